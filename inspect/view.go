package inspect

// This file owns the questions to the nodes about one name, and how their
// answers become one report.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// view is what the nodes say of one name.
type view struct {
	nodes []seen
	sets  protocol.Quorums
}

// seen is what one node says.
type seen struct {
	core.Said
	queue   script.Queue
	written *script.Written // nil: nothing is recorded
}

// look asks every node for the claims of a name, and for its record.
//
// The record is read as it is. A read through the register would bring what a
// minority has to the others, and an onlooker changes nothing. A node for which
// skip returns an error is not asked: that is what it says. skip is called
// concurrently.
func look(ctx context.Context, q core.Onlooker, name string, most int, skip func(s *core.Said) error) (v view, err error) {
	var records []core.Said
	var all sync.WaitGroup
	var failed error
	all.Go(func() { v, err = queues(ctx, q, name, most, 0, skip) })
	all.Go(func() {
		records, _, failed = q.Ask(ctx, func(dst []byte, s *core.Said, keys func(string) script.Keys) []byte {
			if skip(s) != nil {
				return nil
			}
			return resp.AppendCommand(dst, script.ReadLong(keys(name).Record())...)
		})
	})
	all.Wait()
	if err = errors.Join(err, failed); err != nil {
		return v, err
	}
	for i := range v.nodes {
		if s := &v.nodes[i]; s.Err == nil {
			s.written, s.Err = recordOf(records, s.Addr)
		}
	}
	return v, nil
}

// queues asks every node for the claims of a name. A node pushes to the owner
// of the claim with the ticket evict that its hold ends; 0: to none.
func queues(ctx context.Context, q core.Onlooker, name string, most int, evict protocol.Ticket, skip func(s *core.Said) error) (v view, err error) {
	said, sets, err := q.Ask(ctx, func(dst []byte, s *core.Said, keys func(string) script.Keys) []byte {
		if skip(s) != nil {
			return nil
		}
		return script.AppendInspect(dst, keys(name), most, evict)
	})
	v.sets = sets
	for _, said := range said {
		s := seen{Said: said}
		if s.Err == nil {
			s.Err = skip(&s.Said)
		}
		if s.Err == nil {
			s.queue, s.Err = script.DecodeInspect(s.Values)
		}
		v.nodes = append(v.nodes, s)
	}
	return v, err
}

// everyNode skips none.
func everyNode(*core.Said) error { return nil }

// recordOf returns what the node at addr has recorded, nil if nothing. That is
// known of a node only that has answered this question, too.
func recordOf(said []core.Said, addr string) (*script.Written, error) {
	for _, s := range said {
		if s.Addr != addr {
			continue
		}
		if s.Err != nil || len(s.Values) != 1 {
			return nil, cmp.Or(s.Err, errUnread)
		}
		if w, ok := script.ParseWritten(string(s.Values[0].Str)); ok && !w.Erased {
			return &w, nil
		}
		return nil, nil
	}
	return nil, errUnread
}

// known returns the nodes whose word is evidence, a bit for each.
func (v *view) known() (nodes uint32) {
	for _, n := range v.nodes {
		if n.Err == nil && n.queue.Memory > 0 {
			nodes |= 1 << n.Index
		}
	}
	return nodes
}

var (
	errForgetful = errors.New("is new or lost its data, so what it says is no evidence yet")
	errUnread    = errors.New("has not said what is recorded")
)

// missing returns nil if a majority can say, else what is wrong with each node.
func (v *view) missing() error {
	known := v.known()
	if v.sets.Met(known) {
		return nil
	}
	f := &fault.Failure{Err: fault.ErrNoQuorum, Votes: bits.OnesCount32(known & v.sets.All()), Needed: v.sets.Need()}
	for _, n := range v.nodes {
		if known&(1<<n.Index) == 0 {
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n.Addr, Err: cmp.Or(n.Err, errForgetful)})
		}
	}
	return f
}

// merged is one claim, as all nodes together tell of it.
type merged struct {
	script.Claim
	voted, queued uint32                     // nodes, a bit for each
	at            map[protocol.Ticket]uint32 // and which of them have it at which ticket
}

// claims returns the claims that any node tells of, in the order of the queue.
func (v *view) claims() []*merged {
	byID := map[string]*merged{}
	var all []*merged
	for _, n := range v.nodes {
		for _, c := range n.queue.Claims {
			m := byID[c.ID]
			if m == nil {
				m = &merged{Claim: c, at: map[protocol.Ticket]uint32{}}
				byID[c.ID] = m
				all = append(all, m)
			}
			m.Left = max(m.Left, c.Left)
			m.queued |= 1 << n.Index
			m.at[c.Ticket] |= 1 << n.Index
			if c.Voted {
				m.voted |= 1 << n.Index
			}
		}
	}
	for _, m := range all {
		m.Ticket = v.sets.Agreed(m.at)
	}
	slices.SortFunc(all, func(a, b *merged) int { return cmp.Or(cmp.Compare(a.Ticket, b.Ticket), cmp.Compare(a.ID, b.ID)) })
	return all
}

// token is a ticket as tokens show it.
func token(t protocol.Ticket) uint64 { return uint64(t) * core.MaxPasses }

func (m *merged) claim() Claim {
	c := Claim{Token: token(m.Ticket), Since: since(m.Ticket), Left: m.Left, Weight: int64(m.Weight), Votes: bits.OnesCount32(m.voted)}
	if c.Host, c.PID, c.Label = script.ParseOwner(m.Owner); m.Weight == protocol.Writer {
		c.Weight, c.Writer = 1, true
	}
	return c
}

// report puts together what the nodes say.
func (v *view) report(name string) Report {
	r := Report{Name: name, Quorum: v.sets.Need()}
	claims, queued, foreign := v.claims(), 0, uint32(0)
	for _, m := range claims {
		if c := m.claim(); v.sets.Met(m.voted) {
			r.Holders = append(r.Holders, c)
		} else {
			r.Waiters = append(r.Waiters, c)
		}
	}
	for _, n := range v.nodes {
		queued = max(queued, n.queue.Queued)
		r.Capacity = max(r.Capacity, int64(n.queue.Capacity))
		if n.queue.Foreign > 0 {
			foreign |= 1 << n.Index
		}
		r.Foreign = max(r.Foreign, n.queue.Foreign)
	}
	if !v.sets.Met(foreign) {
		r.Foreign = 0
	}
	r.More = max(0, queued-len(claims))
	newest, have := v.newest()
	r.Kind, r.Record = describe(r.Capacity, newest)
	if r.Record != nil {
		r.Record.Nodes = bits.OnesCount32(have & v.sets.All())
	}
	if r.Kind == RWMutex {
		r.Capacity = 0
	}
	for i := range v.nodes {
		r.Nodes = append(r.Nodes, v.node(&v.nodes[i], claims, newest))
	}
	return r
}

// newest returns the newest version of the record that any node has, nil if
// none has one, and the nodes that have it.
func (v *view) newest() (w *script.Written, have uint32) {
	for _, n := range v.nodes {
		switch {
		case n.written == nil:
		case w == nil || n.written.Compare(w.Version) > 0:
			w, have = n.written, 1<<n.Index
		case n.written.Compare(w.Version) == 0:
			have |= 1 << n.Index
		}
	}
	return w, have
}

// node says what one node says, and what of that a majority says otherwise.
func (v *view) node(n *seen, claims []*merged, newest *script.Written) Node {
	r := Node{Node: n.Addr, Err: n.Err, Queued: n.queue.Queued}
	if n.Err != nil {
		return r
	}
	bit, lacks := uint32(1)<<n.Index, 0
	for _, m := range claims {
		switch votes := m.voted&bit != 0; {
		case m.queued&bit == 0 && v.sets.Met(m.voted):
			r.Differs = append(r.Differs, fmt.Sprintf("has no claim of the holder with token %d", token(m.Ticket)))
		case m.queued&bit == 0 && v.sets.Met(m.queued):
			lacks++
		case votes && !v.sets.Met(m.voted):
			r.Differs = append(r.Differs, fmt.Sprintf("votes for %d, as a majority does not", token(m.Ticket)))
		case !votes && v.sets.Met(m.voted):
			r.Differs = append(r.Differs, fmt.Sprintf("does not vote for the holder with token %d", token(m.Ticket)))
		}
		if m.voted&bit != 0 {
			r.Tokens = append(r.Tokens, token(m.Ticket))
		}
	}
	if lacks > 0 {
		r.Differs = append(r.Differs, fmt.Sprintf("lacks %d of those that wait", lacks))
	}
	switch {
	case n.queue.Memory <= 0:
		r.Differs = append(r.Differs, errForgetful.Error())
	case n.queue.Foreign > 0:
		r.Differs = append(r.Differs, fmt.Sprintf("another Redlock client holds the redlock key for %v", n.queue.Foreign.Round(time.Millisecond)))
	}
	switch {
	case newest == nil:
	case n.written == nil:
		r.Differs = append(r.Differs, "has no record")
	case n.written.Compare(newest.Version) != 0:
		r.Differs = append(r.Differs, "has an older record")
	}
	return r
}

// describe tells the kind of a name by its capacity and its record, and reads
// that.
func describe(capacity int64, w *script.Written) (Kind, *Record) {
	kind := None
	switch {
	case capacity == protocol.Writer:
		kind = RWMutex
	case capacity > 1:
		kind = Semaphore
	case capacity == 1:
		kind = Mutex
	}
	if w == nil {
		return kind, nil
	}
	r := &Record{Token: token(w.Ticket), Until: w.Until}
	var is struct {
		Once   int             `json:"once"`
		Period int             `json:"period"`
		Flight int             `json:"flight"`
		ID     string          `json:"id"`
		Value  json.RawMessage `json:"value"`
		Host   string          `json:"host"`
		PID    int             `json:"pid"`
		When   time.Time       `json:"when"`
		Since  time.Time       `json:"since"`
	}
	if json.Unmarshal([]byte(w.Value), &is) != nil {
		return kind, r // another program's, or a later version's
	}
	switch {
	case is.Once > 0:
		r.Host, r.PID, r.At = is.Host, is.PID, is.When
		return Once, r
	case is.Period > 0:
		return Period, r
	case is.Flight > 0:
		return Flight, r
	case is.ID != "": // a leader has one
		r.Host, r.PID, r.ID, r.At = is.Host, is.PID, is.ID, is.Since
		_ = json.Unmarshal(is.Value, &r.Value)
		return Leader, r
	}
	return kind, r
}
