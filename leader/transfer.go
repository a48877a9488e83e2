package leader

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/script"
)

// Handing over to a chosen candidate. The nodes know nothing about this and
// admit the next claim in the queue. The leader records its successor before it
// gives up its claim. A candidate whose claim is admitted reads the record
// before it leads. If the record names another candidate that is in the queue,
// the first one gives up its claim and queues again.
// Invariant: only a candidate with an admitted claim leads. A wrong name in the
// record delays the next term by one TTL at most.

// ErrNoCandidate ("no such candidate") means that no candidate with the given
// ID is waiting.
var ErrNoCandidate = errors.New("no such candidate")

// TransferTo hands the leadership over to the waiting candidate with the given
// ID; see [WithID]. If several candidates have this ID, the first one in the
// queue takes over. Each candidate ahead of it goes to the end of the queue,
// which takes a few round trips. If the chosen candidate dies before it leads,
// the next in line takes over within one TTL.
//
// While [Election.Run] is running, TransferTo ends the context of
// OnStartedLeading, with the cause [quorate.ErrReleased], and returns. Run
// hands over once OnStartedLeading has returned. Without Run, TransferTo waits
// until a majority of the nodes has recorded the successor and confirmed the
// end of the term, like [Election.Resign].
//
// TransferTo returns [ErrNoCandidate] if no candidate with that ID is among the
// first hundred in the queue, [quorate.ErrNotHeld] if this participant is not
// the leader, and [quorate.ErrNoQuorum] if too few nodes answered. After
// ErrNoCandidate, or if the successor could not be recorded, this participant
// is still the leader.
func (e *Election) TransferTo(ctx context.Context, id string) error {
	e.usable()
	return core.WrapError("transfer", e.name, e.transferTo(ctx, id))
}

func (e *Election) transferTo(ctx context.Context, id string) error {
	if e.err != nil {
		return e.err
	}
	t := e.current()
	if t == nil {
		return &fault.Failure{Err: fault.ErrNotHeld}
	}
	if err := t.over(); err != nil {
		return err
	}
	waiting, err := e.waiting(ctx, t)
	if err != nil {
		return err
	}
	if !waits(waiting, id) {
		return fmt.Errorf("%w: no candidate with the ID %.250q is waiting; candidates need WithID", ErrNoCandidate, id)
	}
	if t.drain != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.term != t {
			return &fault.Failure{Err: fault.ErrNotHeld}
		}
		t.next = id
		t.drain()
		return nil
	}
	if err := e.appoint(ctx, t, id); err != nil {
		return err
	}
	return e.resign(ctx)
}

// candidate is a claim that waits behind the leader. The id is "" if it has
// none.
type candidate struct {
	id       string
	priority int
}

func waits(all []candidate, id string) bool {
	return id != "" && slices.ContainsFunc(all, func(c candidate) bool { return c.id == id })
}

// waiting returns the claims other than t's, in queue order.
func (e *Election) waiting(ctx context.Context, t *term) (all []candidate, err error) {
	queue, err := e.q.Onlooker().Queue(ctx, e.name)
	for _, c := range queue {
		if id, priority := script.ParseCandidate(c.Owner); c.ID != t.lease.Hold().ID() {
			all = append(all, candidate{id, priority})
		}
	}
	return all, err
}

// appoint records the successor.
func (e *Election) appoint(ctx context.Context, t *term, id string) error {
	err := e.record(ctx, t, *t.value.Load(), id)
	t.appointed.Store(err == nil)
	return err
}

// handOver appoints the successor, if there is to be one, and ends the term. It
// fails when the term had ended by itself. A failure to appoint is only logged:
// then the next in line leads.
func (e *Election) handOver(ctx context.Context, t *term) error {
	if next := t.next; !t.appointed.Load() && (next != "" || e.set.ranked) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.q.Rounds(e.set.Settings, 2))
		defer cancel()
		var err error
		if next == "" {
			next, err = e.preferred(ctx, t)
		}
		if next != "" && err == nil {
			err = e.appoint(ctx, t, next)
		}
		if err != nil && t.over() == nil {
			e.set.Logger.Warn("quorate: the leader could not name its successor; the next in line leads", "name", e.name, "error", err)
		}
	}
	return e.end(t)
}

// preferred returns the ID of the waiting candidate with the highest priority,
// or "" if it is the next in line anyway. Of those with the same priority, the
// first in the queue counts.
func (e *Election) preferred(ctx context.Context, t *term) (string, error) {
	all, err := e.waiting(ctx, t)
	if err != nil || len(all) == 0 {
		return "", err
	}
	best := slices.MaxFunc(all, func(a, b candidate) int { return cmp.Compare(a.priority, b.priority) }) // the first of several
	if best == all[0] {
		return "", nil
	}
	return best.id, nil
}

// watchQueue calls f once if a candidate with a higher priority is waiting. It
// looks every third of the TTL, which is how often the leader learns whether
// any claim is waiting.
func (e *Election) watchQueue(ctx context.Context, t *term, f func(id string)) {
	tick := time.NewTicker(e.set.TTL / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !t.lease.Hold().HoldState().Waiters {
			continue
		}
		all, _ := e.waiting(ctx, t)
		if i := slices.IndexFunc(all, func(c candidate) bool { return c.priority > e.set.priority }); i >= 0 {
			f(all[i].id)
			return
		}
	}
}

// appointment is a successor that a candidate has found in the record: by which
// write, and when it was found first.
type appointment struct {
	term, seq uint64
	found     time.Time
}

// yields reports whether the last leader has named another candidate, which is
// waiting. A candidate yields to one appointment for a TTL at most: a successor
// that queues again and again without leading must not keep out all others.
func (e *Election) yields(ctx context.Context, t *term, last *appointment) bool {
	ctx, stop := t.lease.Derive(ctx)
	defer stop()
	rec, err := e.reg.Read(ctx)
	var r record
	if err != nil || !rec.Exists || json.Unmarshal(rec.Value, &r) != nil || r.Next == "" || r.Next == e.set.id {
		return false
	}
	if last.term != rec.Token || last.seq != rec.Seq {
		*last = appointment{rec.Token, rec.Seq, time.Now()}
	}
	if time.Since(last.found) > e.set.TTL {
		return false
	}
	all, err := e.waiting(ctx, t)
	return err == nil && waits(all, r.Next)
}
