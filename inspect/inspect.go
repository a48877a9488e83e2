// Package inspect shows which names are in use, which process holds a name,
// which processes are waiting for it, and what each node reports about it. It
// is meant for operators and monitoring. "quorate inspect" and "quorate ls"
// print the same information.
//
//	r, err := inspect.Name(ctx, q, "invoices")
//	for _, c := range r.Holders {
//		fmt.Println(c.Host, c.PID, c.Label, "holds it, token", c.Token)
//	}
//
// Inspecting a name makes no claim, takes no place in a queue, and changes
// nothing on the nodes. The processes themselves are not asked, so a holder
// that is stopped or dead is shown until its lease expires. The information may
// be out of date by the time it arrives, so a program must not use a name just
// because it is shown as free. Only [Evict] changes anything: it ends a hold.
//
// All functions in this package are safe for concurrent use.
package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// A Report is what the nodes report about a name.
type Report struct {
	Name     string
	Kind     Kind
	Capacity int64   // number of permits; 1 for a mutex; 0 for an rwmutex or if there is no claim
	Holders  []Claim // each has the votes of a majority
	Waiters  []Claim // in queue order
	More     int     // number of claims after the first hundred, which are not shown
	// How long another library (redsync, symfony/lock …) will hold the name's
	// key; 0 if none does.
	Foreign time.Duration
	Record  *Record // nil if nothing is recorded
	Nodes   []Node  // in the order of their numbers
	Quorum  int     // number of nodes in a majority
}

// Name asks every node what it knows about a name. If a node does not answer,
// Name waits for it as long as a lock would, and reports the node with an
// error.
//
// If fewer than a majority of the nodes can be asked, or if they may have
// forgotten a lease, Name returns [quorate.ErrNoQuorum] along with the full
// report. It returns [quorate.ErrInvalid] if the name is not allowed, and
// [quorate.ErrClosed] after Close.
func Name(ctx context.Context, q *quorate.Quorum, name string) (Report, error) {
	if err := setup.CheckName(name); err != nil {
		return Report{}, core.WrapError("inspect", name, err)
	}
	v, err := look(ctx, core.CoreOf(q).For(name).Onlooker(), name, most, everyNode)
	if err != nil {
		return Report{}, core.WrapError("inspect", name, err)
	}
	r := v.report(name)
	return r, core.WrapError("inspect", name, v.missing())
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
		m.Ticket = v.sets.DisplayTicket(m.at)
	}
	slices.SortFunc(all, func(a, b *merged) int {
		return cmp.Or(cmp.Compare(a.Ticket, b.Ticket),
			cmp.Compare(a.ID, b.ID))
	})
	return all
}

func (m *merged) claim() Claim {
	c := Claim{Token: token(m.Ticket), Since: since(m.Ticket), Left: m.Left, Weight: int64(m.Weight),
		Votes: bits.OnesCount32(m.voted)}
	c.ID, c.Priority = script.ParseCandidate(m.Owner)
	if c.Host, c.PID, c.Label, c.Note = script.ParseOwner(m.Owner); m.Weight == protocol.Writer {
		c.Weight, c.Writer = 1, true
	}
	return c
}

// bare reports whether a hold ends with any of the nodes that it rests on,
// although another node could vote for it.
func (v *view) bare(m *merged) bool {
	votes := m.voted & v.sets.All()
	if v.known()&v.sets.All()&^votes == 0 {
		return false
	}
	for i := range v.nodes {
		if bit := uint32(1) << v.nodes[i].Index; votes&bit != 0 && !v.sets.Met(votes&^bit) {
			return true
		}
	}
	return false
}

// report puts together what the nodes say.
func (v *view) report(name string) Report {
	r := Report{Name: name, Quorum: v.sets.Need()}
	claims, queued, foreign := v.claims(), 0, uint32(0)
	for _, m := range claims {
		if c := m.claim(); v.sets.Met(m.voted) {
			c.Bare = v.bare(m)
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
	if r.Kind == Mutex && len(claims) > 0 {
		r.Kind = kindOf(claims[0])
	}
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

// kindOf is the kind that a claim tells, for a name whose capacity and record
// do not: work that is being done, or a semaphore of one permit.
func kindOf(m *merged) Kind {
	switch kind := Kind(core.KindOf(m.ID)); kind {
	case Semaphore, Once, Leader, Period, Flight:
		return kind
	}
	return Mutex // also a shard, and a claim of an older version
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
			r.Differs = append(r.Differs, fmt.Sprintf("votes for %d, unlike a majority", token(m.Ticket)))
		case !votes && v.sets.Met(m.voted):
			r.Differs = append(r.Differs, fmt.Sprintf("does not vote for the holder with token %d", token(m.Ticket)))
		}
		if m.voted&bit != 0 {
			r.Tokens = append(r.Tokens, token(m.Ticket))
		}
	}
	if lacks > 0 {
		r.Differs = append(r.Differs, fmt.Sprintf("lacks %d of the waiters", lacks))
	}
	switch {
	case n.queue.Memory <= 0:
		r.Differs = append(r.Differs, errForgetful.Error())
	case n.queue.Foreign > 0:
		r.Differs = append(r.Differs, fmt.Sprintf("another library holds the key of that name for %v",
			n.queue.Foreign.Round(time.Millisecond)))
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
		Start  int64           `json:"start"` // of a period, in Unix microseconds
		Flight int             `json:"flight"`
		At     int64           `json:"at"` // of a flight, likewise
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
		r.At = time.UnixMicro(is.Start)
		return Period, r
	case is.Flight > 0:
		r.At = time.UnixMicro(is.At)
		return Flight, r
	case is.ID != "": // a leader has one
		r.Host, r.PID, r.ID, r.At = is.Host, is.PID, is.ID, is.Since
		_ = json.Unmarshal(is.Value, &r.Value)
		return Leader, r
	}
	return kind, r
}
