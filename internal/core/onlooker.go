package core

// Requests from callers that hold no claim: observers, and package operator,
// which changes the set.

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// Onlooker asks the nodes without a claim. It asks for no vote, waits for no
// turn, and no holder learns of it. A context or a number of node timeouts
// limits each question. It is safe for concurrent use.
type Onlooker struct{ q *Quorum }

// Onlooker returns an Onlooker for the nodes of this client.
func (q *Quorum) Onlooker() Onlooker { return Onlooker{q} }

// Configuration waits until this client counts on a configuration, or ctx ends.
// It fails earlier only if waiting cannot help: the listed nodes do not form a
// set, too many nodes refuse permanently, or the Quorum is closed. It also
// waits for brand-new nodes, because they may still record their set.
func (o Onlooker) Configuration(ctx context.Context) (*nodeset.Configuration, error) {
	for q := o.first(); ; {
		changed := q.Members.WaitForSet()
		c, err := o.Recorded(ctx)
		if _, hopeless := q.Unready(); err == nil || hopeless || errors.Is(err, fault.ErrInvalid) ||
			errors.Is(err, fault.ErrClosed) {
			return c, err
		}
		select {
		case <-changed:
		case <-time.After(q.Set.NodeTimeout):
		case <-q.Over:
		case <-ctx.Done():
			return nil, q.Members.Unknown().Cut(ctx)
		}
	}
}

// Recorded is like Configuration, but waits no longer than a TryLock would. It
// also fails if the nodes have recorded no set, or do not answer in that time.
func (o Onlooker) Recorded(ctx context.Context) (*nodeset.Configuration, error) {
	if o.q.IsClosed() {
		return nil, &fault.Failure{Err: fault.ErrClosed}
	}
	q := o.first()
	if err := q.Members.Await(ctx, true); err != nil {
		return nil, err
	}
	if c := q.Members.Config.Load(); c != nil {
		return c, nil
	}
	return nil, q.Members.Unknown() // all nodes have lost their data in the meantime
}

// first returns the first bucket, which stands for all, or the client itself.
func (o Onlooker) first() *Quorum {
	if o.q.buckets != nil {
		return o.q.buckets.all[0].Load()
	}
	return o.q
}

// NodeAnswer is what one node answers to an onlooker.
type NodeAnswer struct {
	Index  int // the node's number in protocol.Quorums
	Addr   string
	Server string // the server that the connection goes to; one of several if the node is a Redis Cluster
	Err    error
	Values []resp.Value
}

// A Question appends the command for a node. If it returns nil the node is not
// asked, and has no values.
type Question = func(dst []byte, s *NodeAnswer, keys func(name string) script.Keys) []byte

// Ask asks every node a question. It returns the answer of each node, and the
// rule by which answers form a quorum. It fails only with ErrClosed.
func (o Onlooker) Ask(ctx context.Context, question Question) ([]NodeAnswer, protocol.Quorums, error) {
	q := o.q
	if q.IsClosed() {
		return nil, protocol.Quorums{}, &fault.Failure{Err: fault.ErrClosed}
	}
	q.Members.Settled(ctx)
	if !q.Members.SetKnown() {
		f, all := q.Members.Unknown(), []NodeAnswer(nil)
		for i, n := range f.Nodes {
			all = append(all, NodeAnswer{Index: i, Addr: n.Addr, Err: n.Err})
		}
		return all, protocol.Majority(len(q.Seeds.Live())), nil
	}
	answers, sets := o.ask(ctx, false, question)
	return answers, sets, nil
}

// ask is Ask for a set that is known. It waits for a node that hangs as long as
// a claim waits for its farthest node, unless a majority is enough.
func (o Onlooker) ask(ctx context.Context, enough bool, question Question) ([]NodeAnswer, protocol.Quorums) {
	q := o.q
	ctx, cancel := context.WithTimeout(ctx, q.Driver.LongestTimeout(&q.Set))
	defer cancel()
	// Read the quorums before the list of nodes: every node is listed before
	// claims count on it, so no node of sets is missing.
	sets, home := q.Driver.Sets(), q.Members.Home()
	keys := func(name string) script.Keys { return script.NewKeys(q.Set.Prefix, name).At(home) }
	list := q.Nodes.Live()
	answers := make([]NodeAnswer, len(list))
	var all sync.WaitGroup
	var answered atomic.Uint32
	for i, n := range list {
		s := &answers[i]
		s.Index, s.Addr, s.Server = n.Index, n.Addr, n.Info().Addr
		all.Go(func() {
			if command := question(nil, s, keys); command != nil {
				s.Values, s.Err = n.Answer(ctx, command)
				s.Err = q.Members.CheckSet(n.Index, s.Err)
				if bit := uint32(1) << n.Index; enough && s.Err == nil && sets.Met(answered.Or(bit)|bit) {
					cancel()
				}
			}
		})
	}
	all.Wait()
	return answers, sets
}

// Parts returns onlookers that together see all names: o alone, or one for each
// bucket. Buckets that have not begun are started.
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

// Holder is the holder of a name as the nodes show it: see Holder of the root
// package. It proves nothing: the name may have another holder by the time the
// caller reads it.
type Holder struct {
	Token   uint64
	Host    string
	PID     int
	Label   string
	Note    string
	Left    time.Duration
	Holders int
	Waiters int
	Foreign bool
}

// Holder asks all nodes for the holder of a name. It does not queue a claim,
// and the holder does not notice.
func (o Onlooker) Holder(ctx context.Context, s *Spec) (Holder, error) {
	q := o.q
	if err := q.Members.Await(ctx, true); err != nil {
		return Holder{}, err
	}
	most := 1
	if s.Capacity > 1 {
		most = 100 // those behind them count as waiters
	}
	answers, sets := o.ask(ctx, false, func(dst []byte, _ *NodeAnswer, keys func(string) script.Keys) []byte {
		return script.AppendInspect(dst, keys(s.Name), most, 0)
	})
	// Indexed by node number.
	var queues [peers.MaxNodes]script.Queue
	var heads [peers.MaxNodes]lease.Head
	f := &fault.Failure{Err: fault.ErrNoQuorum, Needed: sets.Need()}
	answered, rest, at := uint32(0), time.Duration(0), map[string]map[protocol.Ticket]uint32{}
	for _, n := range answers {
		queue, err := script.Queue{}, n.Err
		if err == nil {
			queue, err = script.DecodeInspect(n.Values)
		}
		if err == nil {
			answered |= 1 << n.Index
			// A node that began less than a guard time ago may not know the
			// holder, and may show the first waiter as the head.
			if queue.Memory < q.Guard() {
				err = fault.ErrForgetful
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
	// Left and Waiters come from any one node that names the holder. The nodes
	// differ by about a round trip, and the numbers are only informative.
	found := lease.FindHolder(heads[:], sets)
	switch found.Kind {
	case lease.HeldByClaim:
		queue := queues[found.Node]
		c := queue.Claims[found.Claim]
		h := Holder{
			Token: uint64(sets.DisplayTicket(at[c.ID])) * MaxPasses, Left: c.Left,
			Holders: found.Holders, Waiters: queue.Queued - len(queue.Claims),
		}
		h.Host, h.PID, h.Label, h.Note = script.ParseOwner(c.Owner)
		return h, nil
	case lease.HeldByForeign:
		return Holder{Foreign: true, Left: rest}, nil
	case lease.HeldUnknown:
		f.Votes = found.Most
		return Holder{}, f
	}
	return Holder{}, &fault.Failure{Err: fault.ErrNotHeld}
}

// Operate waits until a majority of the set's members is connected, so that a
// change of the set can begin. If the set is known but no majority is connected,
// Operate first calls before, if that is not nil, and returns its error.
func (q *Quorum) Operate(ctx context.Context, before func() error) error {
	switch {
	case q.IsClosed():
		return &fault.Failure{Err: fault.ErrClosed}
	case q.buckets != nil:
		return &fault.Failure{Err: fmt.Errorf("%w: a set that contains a cluster cannot be changed: stop all "+
			"clients, and start with new nodes", fault.ErrInvalid)}
	}
	// Nothing can be decided without a majority. ReadyWith also fails if this
	// client's list does not match the set, so such a client never proposes a
	// configuration. A ttl or a guard time that is too long for the set must
	// not prevent a change, because the remedy is a change: one that raises the
	// guard time of the set.
	own := q.Set
	own.TTL, own.GuardGiven = 0, false
	if before != nil {
		q.Members.Found(ctx)
		if f, _ := q.Unready(); f != nil && q.Members.SetKnown() && ctx.Err() == nil {
			if err := before(); err != nil {
				return err
			}
		}
	}
	return q.ReadyWith(ctx, &own)
}

// Look asks a member how much of its guard time is left, and whether it is
// caught up as a member of a configuration. A member that this client has not
// connected to yet counts as not answering.
func (q *Quorum) Look(ctx context.Context, number int, of nodeset.Stamp) (
	wait time.Duration, caughtUp bool, err error,
) {
	n := q.Node(number)
	if n == nil {
		return 0, false, fault.ErrNoAnswer
	}
	n.Tried(ctx)
	m, err := q.repairs.lookAt(ctx, n, script.HomeOf(of).Marker(q.Set.Prefix), true)
	return m.Wait, m.CaughtUp, err
}

// Succeed carries out a Run on the register that decides which configuration
// follows.
func (q *Quorum) Succeed(
	ctx context.Context, register string, ttl, nodeTimeout time.Duration, run *lease.Run,
) error {
	own := q.Set
	own.TTL, own.NodeTimeout, own.GuardGiven = ttl, nodeTimeout, false // see Operate
	spec, err := q.NewSpec(Spec{Name: register, Weight: 1, Capacity: 1, Set: &own})
	if err != nil {
		return err
	}
	spec.decidesSuccessor = true
	_, err = q.Register(spec).run(ctx, none, run.Decide)
	return err
}

// kinds are the kinds of primitives, as Spec.Kind has them. A claim's id stores
// an index into this list, so add new kinds at the end.
var kinds = []string{"mutex", "rwmutex", "semaphore", "once", "leader", "period", "flight", "shards"}

// The kind of a claim is stored in three bytes of its id that nothing else
// reads: digests use the first seven bytes, the residue the last. The other 104
// bits are random. No decision depends on the kind. Claims of older versions
// have wholly random ids, and show a wrong kind once in two million claims.
const (
	kindAt    = 12
	kindMark1 = 0x51
	kindMark2 = 0x6b
)

// markKind returns the id with the claim's kind stored in it.
func markKind(id protocol.ID, kind string) protocol.ID {
	if i := slices.Index(kinds, kind); i >= 0 {
		id[kindAt], id[kindAt+1], id[kindAt+2] = kindMark1, kindMark2, byte(i)
	}
	return id
}

// KindOf returns the kind of primitive that made a claim, from the claim's id
// as the nodes store it. It returns "" if the id has no kind.
func KindOf(id string) string {
	var b protocol.ID
	if n, err := hex.Decode(b[:], []byte(id[:min(len(id), 2*len(b))])); err != nil || n < len(b) {
		return ""
	}
	if b[kindAt] != kindMark1 || b[kindAt+1] != kindMark2 || int(b[kindAt+2]) >= len(kinds) {
		return ""
	}
	return kinds[b[kindAt+2]]
}
