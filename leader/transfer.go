package leader

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/script"
)

// Handing over to a chosen candidate. Nodes admit the next claim in the queue.
// So the leader leaves a message in its last write, the erasure of its record:
// which claim is to lead. It releases its claim when a majority has that. Take
// the candidates B, C and D in this order, and a leader that has chosen C. B is
// admitted, reads the message, and its token is below C's. So B releases its
// claim and queues again behind D. C is admitted, and leads.
//
// If C has died, its claim stays ahead until its lease ends, one TTL at most.
// Then D is admitted. Its token is above C's, so C is gone, and D leads.
// Invariant: a candidate steps back at most once for a claim, whatever tokens
// the nodes give. So without C, another one leads after one step back of each.

// ErrNoCandidate ("no such candidate") means that no candidate with the given
// ID is waiting.
var ErrNoCandidate = errors.New("no such candidate")

// successor is the claim that is to lead next.
type successor struct {
	Claim string `json:"next"`
	Token uint64 `json:"token"` // a waiter's token never falls
}

// precedes reports whether the admitted claim id steps back for s. stepped is
// the claim for which its participant has stepped back last.
func (s *successor) precedes(id string, token uint64, stepped string) bool {
	return s.Claim != id && s.Claim != stepped && token < s.Token
}

// candidate is a claim that waits behind the leader.
type candidate struct {
	successor
	id       string
	priority int
}

// candidates returns the candidates in a queue, without the leader's own claim.
// If several have the same ID and priority, the last one counts: the others may
// be of a process that was killed and restarted.
func candidates(queue []script.Claim, own string) (all []candidate) {
	for _, c := range queue {
		id, priority := script.ParseCandidate(c.Owner)
		if id == "" || c.ID == own {
			continue
		}
		all = slices.DeleteFunc(all, func(o candidate) bool { return o.id == id && o.priority == priority })
		all = append(all, candidate{successor{c.ID, uint64(c.Ticket) * core.MaxPasses}, id, priority})
	}
	return all
}

// highest returns the first candidate with the highest priority, nil if there
// is no candidate.
func highest(all []candidate) *candidate {
	if len(all) == 0 {
		return nil
	}
	best := slices.MaxFunc(all, func(a, b candidate) int { return cmp.Compare(a.priority, b.priority) })
	return &best
}

// withID returns the first candidate with the ID, nil if there is none.
func withID(all []candidate, id string) *candidate {
	if i := slices.IndexFunc(all, func(c candidate) bool { return c.id == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

// TransferTo hands the leadership over to the waiting candidate with the given
// ID: see [WithID]. If several candidates have this ID and the same priority,
// the last in line leads, because the others may belong to a process that was
// killed and restarted. If they have different priorities, the first of them
// leads. Candidates ahead of it go to the end of the queue, one after the other,
// and each takes two round trips: 60 candidates took 120 ms on three servers of
// one machine. If the chosen candidate has died, or dies before it leads, nobody
// leads until its lease has ended, which takes one TTL at most. Then the next in
// line leads.
//
// While [Election.Run] is running, TransferTo ends the context of
// OnStartedLeading, with the cause [quorate.ErrReleased], and returns. Run
// hands over when OnStartedLeading has returned; until then, another TransferTo
// may choose another candidate. If the queue can't be read at that moment, the
// next in line leads. Without Run, TransferTo waits until a majority
// of the nodes has confirmed the end of the term, as [Election.Resign] does.
//
// TransferTo returns [ErrNoCandidate] if no candidate with that ID is among the
// first hundred claims in the queue, [quorate.ErrNotHeld] if this participant
// does not lead, and [quorate.ErrNoQuorum] if too few nodes answered. After an
// error, [Election.Lease] tells whether this participant still leads.
func (e *Election) TransferTo(ctx context.Context, id string) error {
	e.usable()
	t := e.current()
	all, err := e.waiting(ctx, t)
	next := withID(all, id)
	switch {
	case err != nil:
	case t.over() != nil: // while the queue was read
		err = t.over()
	case next == nil:
		err = fmt.Errorf("%w: no candidate with the ID %.250q is waiting; candidates need WithID", ErrNoCandidate,
			id)
	case t.drain != nil:
		err = e.choose(t, id)
	case !e.take(t):
		err = &fault.Failure{Err: fault.ErrNotHeld}
	default:
		if err = e.end(ctx, t, next); err == nil {
			err = t.lease.Hold().Released(ctx)
		}
	}
	return core.WrapError("transfer", e.name, err)
}

// choose makes Run hand t over to the candidate with the ID, and ends the
// context of OnStartedLeading. It fails if Run has already ended t.
func (e *Election) choose(t *term, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.term != t {
		return &fault.Failure{Err: fault.ErrNotHeld}
	}
	t.next = id
	t.drain()
	return nil
}

// Outranked reports whether a candidate with a higher priority than this
// leader is waiting: see [WithPriority]. A leader can call it between two
// pieces of its work, and then resign, or return from OnStartedLeading. Nodes
// are asked only if the leader knows that a claim is waiting, which it learns
// within TTL/3. Outranked returns [quorate.ErrNotHeld] if this participant does
// not lead, and [quorate.ErrNoQuorum] if too few nodes answered.
func (e *Election) Outranked(ctx context.Context) (bool, error) {
	e.usable()
	t := e.current()
	if t != nil && t.over() == nil && !t.lease.Hold().HoldState().Waiters {
		return false, nil
	}
	all, err := e.waiting(ctx, t)
	best := highest(all)
	return best != nil && best.priority > e.set.priority, core.WrapError("outranked", e.name, err)
}

// waiting returns the candidates behind t, the current term.
func (e *Election) waiting(ctx context.Context, t *term) ([]candidate, error) {
	switch {
	case e.err != nil:
		return nil, e.err
	case t == nil:
		return nil, &fault.Failure{Err: fault.ErrNotHeld}
	}
	if over := t.over(); over != nil {
		return nil, over
	}
	queue, err := e.q.Onlooker().Queue(ctx, e.name)
	return candidates(queue, t.lease.Hold().ID()), err
}

// handOver ends the term. Its successor is the candidate that TransferTo chose
// while Run was running, or with WithPriority the best one. The queue is read
// now: while OnStartedLeading was finishing its work, the chosen candidate may
// have been restarted, and then it has another claim. If the queue cannot be
// read, the next in line leads.
func (e *Election) handOver(ctx context.Context, t *term) error {
	var next *candidate
	if t.next != "" || e.set.ranked && t.lease.Hold().HoldState().Waiters {
		ctx, cancel := context.WithTimeout(ctx, e.q.Rounds(e.set.Settings, 1))
		all, _ := e.waiting(ctx, t)
		cancel()
		if next = withID(all, t.next); next == nil && e.set.ranked {
			next = highest(all)
		}
	}
	return e.end(ctx, t, next)
}

// stepsBack reports whether the last leader has chosen another claim, which
// waits behind this one. If the record cannot be read within a round trip, this
// claim leads. Nothing is read if no claim waits behind this one: a node that
// votes for this claim knows the chosen one, and says with its vote whether
// others wait. Participants with neither an ID nor a priority don't read either.
// If it reports true, it has remembered the chosen claim in e.stepped, and the
// caller must release l and queue again.
func (e *Election) stepsBack(ctx context.Context, l *core.Lease) bool {
	if e.own == e.spec || !l.Hold().HoldState().Waiters {
		return false
	}
	ctx, stop := l.Derive(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, e.q.Rounds(e.set.Settings, 1))
	defer cancel()
	rec, err := e.reg.Peek(ctx)
	var next successor
	if err != nil || rec.Exists || json.Unmarshal(rec.Value, &next) != nil ||
		!next.precedes(l.Hold().ID(), l.Token(), e.stepped) {
		return false
	}
	e.stepped = next.Claim
	return true
}
