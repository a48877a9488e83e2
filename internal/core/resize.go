package core

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// This file owns the number of a semaphore's permits. It is a record beside the
// semaphore's name, written under a lock of its own: a full semaphore admits no
// claim, so a Resize under a claim of the semaphore would wait for the holders.
// The nodes read it with every request of the semaphore's claims, and return it
// with every answer.

// number is the register that keeps how many permits a semaphore has.
func (q *Quorum) number(s *Spec) (*Register, error) {
	lock, err := q.NewSpec(Spec{Name: s.Name, side: script.Number, Weight: 1, Capacity: 1, Set: s.Set})
	return q.Register(lock), err
}

// Resize changes how many permits a semaphore has, for all clients. It returns
// when a majority has the number. From then on every quorum of votes contains a
// node that knows it, so a smaller number holds for each claim that is admitted
// later. Nodes that have missed it are given it by repairs. Claims that hold
// are not ended by a smaller number: new ones wait until enough have left.
func (q *Quorum) Resize(ctx context.Context, s *Spec, n uint64) error {
	r, err := q.number(s)
	if err != nil {
		return err
	}
	var h *Hold
	for again := (Retry{}); ; again.Wait(ctx, q, s.Name, err) {
		if h, err = q.Acquire(ctx, r.spec, false, nil); err != nil {
			return err
		}
		if _, err = r.Open(ctx, h); err == nil {
			break
		}
		// No other call resizes under this claim, so the next one is above what
		// overtook it.
		if h.Release(); !errors.Is(err, fault.ErrLost) {
			return err
		}
	}
	defer h.Release()
	if err := r.Put(ctx, h, 0, strconv.AppendUint(nil, n, 10), 0); err != nil {
		return err
	}
	// Have every node serve the claims that fit now: any request does that.
	// Without it the waiters learn of a larger number with their next beat.
	// This one is of an id that has no claim, so it changes nothing else.
	t := protocol.Terms{ID: newID(), Weight: 1, Capacity: s.Capacity, Counting: true, TTL: s.Set.TTL}
	for _, n := range q.nodes.all() {
		n.send(&adminRequest{command: q.command(nil, s, &t, protocol.Request{Op: protocol.OpBeat})})
	}
	return nil
}

// Permits asks the nodes how many permits a semaphore has: as the last Resize
// said, or else as declared.
func (q *Quorum) Permits(ctx context.Context, s *Spec) (uint64, error) {
	r, err := q.number(s)
	if err != nil {
		return 0, err
	}
	rec, err := r.Read(ctx)
	if err == nil && rec.Undecided {
		err = &fault.Failure{Err: fmt.Errorf("%w: a Resize is under way", fault.ErrHeld)}
	}
	if err != nil || !rec.Exists {
		return s.Capacity, err
	}
	return strconv.ParseUint(string(rec.Value), 10, 53)
}

// tooHeavy is the error of a claim that asks for more than a Resize has left.
func (a *attempt) tooHeavy() error {
	a.mu.Lock()
	limit, _ := a.claim.Limit(a.q.now())
	a.mu.Unlock()
	return fmt.Errorf("%w: %d permits were asked for, and since a Resize there are %d", fault.ErrInvalid, a.spec.Weight, limit)
}
