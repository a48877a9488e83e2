package core

// This file owns the questions to all nodes that no claim asks.

import (
	"context"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/rule"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// Onlooker asks the nodes without a claim. It asks for no vote, waits for no
// turn, and no holder learns of it. Each question is bounded by a context or a
// number of node timeouts. It is safe for concurrent use.
type Onlooker struct{ q *Quorum }

// Onlooker returns one of this client's nodes.
func (q *Quorum) Onlooker() Onlooker { return Onlooker{q} }

// Configuration waits until one is known that this client counts on.
func (o Onlooker) Configuration(ctx context.Context) (*nodeset.Configuration, error) {
	q := o.q
	switch {
	case q.isClosed():
		return nil, &fault.Failure{Err: fault.ErrClosed}
	case q.buckets != nil:
		return Onlooker{q.buckets.all[0].Load()}.Configuration(ctx)
	}
	if err := q.members.await(ctx, true); err != nil {
		return nil, err
	}
	return q.members.config.Load(), nil
}

// Said is what one node answers to an onlooker.
type Said struct {
	Index  int // as protocol.Quorums numbers the nodes
	Addr   string
	Server string // that the connection goes to: of a Redis Cluster one of its servers
	Err    error
	Values []resp.Value
}

// A Question appends the command for a node. One for which it returns nil is
// not asked, and has no values.
type Question = func(dst []byte, s *Said, keys func(name string) script.Keys) []byte

// Ask puts a question to every node. It returns what each of them says, and
// which make a quorum. It fails only with ErrClosed.
func (o Onlooker) Ask(ctx context.Context, question Question) ([]Said, protocol.Quorums, error) {
	q := o.q
	if q.isClosed() {
		return nil, protocol.Quorums{}, &fault.Failure{Err: fault.ErrClosed}
	}
	q.members.settled(ctx)
	if !q.members.usable() {
		f, all := q.members.unknown(), []Said(nil)
		for i, n := range f.Nodes {
			all = append(all, Said{Index: i, Addr: n.Addr, Err: n.Err})
		}
		return all, protocol.Majority(len(q.seeds.live())), nil
	}
	said, sets := o.ask(ctx, question)
	return said, sets, nil
}

// ask is Ask once there is a set. A node that hangs is waited for as a claim
// waits for its furthest node.
func (o Onlooker) ask(ctx context.Context, question Question) ([]Said, protocol.Quorums) {
	q := o.q
	ctx, cancel := context.WithTimeout(ctx, q.driver.furthest(&q.set))
	defer cancel()
	sets, home := q.driver.sets(), q.members.home() // before the list: a node is made before claims count on it
	keys := func(name string) script.Keys { return script.NewKeys(q.set.Prefix, name).At(home) }
	list := q.nodes.live()
	said := make([]Said, len(list))
	var all sync.WaitGroup
	for i, n := range list {
		s := &said[i]
		s.Index, s.Addr, s.Server = n.index, n.addr, n.info().Addr
		all.Go(func() {
			if command := question(nil, s, keys); command != nil {
				s.Values, s.Err = n.answer(ctx, command)
				s.Err = fault.NamesAge(q.members.checkSet(n.index, s.Err))
			}
		})
	}
	all.Wait()
	return said, sets
}

// Parts returns onlookers of all names: o alone, or one for each bucket. Those
// that have not begun begin.
func (o Onlooker) Parts() (all []Onlooker, err error) {
	if o.q.buckets == nil {
		return []Onlooker{o}, nil
	}
	err = o.q.buckets.each(func(int, *Quorum) error { return nil })
	for _, b := range o.q.buckets.begun() {
		all = append(all, Onlooker{b})
	}
	return all, err
}

// NameOf returns the name that a key is of, if it is the key of a name's claims
// or of its record, and no key of the library's own.
func NameOf(key string) (name string, ok bool) {
	_, name, ours := strings.Cut(key, ":{")
	name, end, whole := strings.Cut(name, "}")
	ok = ours && whole && (end == "" || end == ":r") && setup.CheckName(name) == nil && !protocol.IsSuccessor(name)
	return name, ok
}

// Holder is the holder of a name as the nodes show it: see the root package's.
// It is no proof: the name may have another holder when the caller reads it.
type Holder struct {
	Token   uint64
	Host    string
	PID     int
	Label   string
	Left    time.Duration
	Holders int
	Waiters int
	Foreign bool
}

// mostHolders is how many claims of a shared name a node lists for an onlooker.
// Those behind them count as waiters.
const mostHolders = 100

// Holder asks all nodes for the holder of a name. An onlooker is no waiter: it
// has no claim, and the holder does not learn of it.
func (o Onlooker) Holder(ctx context.Context, s *Spec) (Holder, error) {
	q := o.q
	if q.isClosed() {
		return Holder{}, &fault.Failure{Err: fault.ErrClosed}
	}
	if err := q.members.await(ctx, true); err != nil {
		return Holder{}, err
	}
	most := 1
	if s.Capacity > 1 {
		most = mostHolders
	}
	said, sets := o.ask(ctx, func(dst []byte, _ *Said, keys func(string) script.Keys) []byte {
		return script.AppendInspect(dst, keys(s.Name), most, 0)
	})
	// By number, for all that there can be.
	var queues [maxNodes]script.Queue
	var heads [maxNodes]lease.Head
	f := &fault.Failure{Err: fault.ErrNoQuorum, Needed: sets.Need()}
	answered, rest, at := uint32(0), time.Duration(0), map[string]map[protocol.Ticket]uint32{}
	for _, n := range said {
		queue, err := script.Queue{}, n.Err
		if err == nil {
			queue, err = script.DecodeInspect(n.Values)
		}
		if err == nil {
			answered |= 1 << n.Index
			// A node that began less than a guard time ago may lack the holder,
			// and show the first waiter as the head.
			if queue.Memory < q.guard() {
				err = errForgetful
			}
		}
		if err != nil {
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n.Addr, Err: err})
		}
		head := &heads[n.Index]
		head.Known, head.Foreign = err == nil, queue.Foreign
		rest = max(rest, queue.Foreign)
		queue.Claims = slices.DeleteFunc(queue.Claims, func(c script.Claim) bool { return !c.Voted })
		for _, c := range queue.Claims {
			head.Voted = append(head.Voted, c.ID)
			if at[c.ID] == nil {
				at[c.ID] = map[protocol.Ticket]uint32{}
			}
			at[c.ID][c.Ticket] |= 1 << n.Index
		}
		queues[n.Index] = queue
	}
	if f.Votes = bits.OnesCount32(answered & sets.All()); !sets.Met(answered) {
		return Holder{}, f
	}
	// Left and Waiters come from one node of those that name the holder: they
	// differ by a round trip between nodes, and only inform.
	found := lease.FindHolder(heads[:], sets, rule.Protocol())
	switch found.Kind {
	case lease.HeldByClaim:
		queue := queues[found.Node]
		c := queue.Claims[found.Claim]
		h := Holder{Token: uint64(sets.Agreed(at[c.ID])) * MaxPasses, Left: c.Left, Holders: found.Holders, Waiters: queue.Queued - len(queue.Claims)}
		h.Host, h.PID, h.Label = ParseOwner(c.Owner)
		return h, nil
	case lease.HeldByForeign:
		return Holder{Foreign: true, Left: rest}, nil
	case lease.HeldUnknown:
		f.Votes = found.Most
		return Holder{}, f
	}
	return Holder{}, &fault.Failure{Err: fault.ErrNotHeld}
}

// ParseOwner reads host, process and label from a channel. One of another form
// has no host. Parts are counted from the end: a prefix may contain colons.
func ParseOwner(channel string) (host string, pid int, label string) {
	parts := strings.Split(channel, ":")
	if len(parts) < 3 {
		return "", 0, ""
	}
	pid, _ = strconv.Atoi(parts[len(parts)-2])
	_, label, _ = strings.Cut(parts[len(parts)-1], ".")
	return parts[len(parts)-3], pid, label
}
