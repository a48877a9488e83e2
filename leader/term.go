package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/script"
)

// record is what the nodes keep of a leader, as JSON.
type record struct {
	ID    string    `json:"id"`
	Value string    `json:"value"`
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// win waits for the claim and records it. It fails with ErrLost when the claim
// was lost before it was recorded; nothing is left of it then, nor after any
// other error.
func (e *Election) win(ctx context.Context, value string) (*term, error) {
	t := &term{}
	for steps := true; steps; {
		var err error
		if t.lease, err = e.q.AcquireLease(ctx, e.own, false, new(core.Single)); err != nil {
			return nil, err
		}
		if steps = e.stepsBack(ctx, t.lease); steps {
			_ = t.lease.Release()
		}
	}
	if ctx.Err() != nil {
		// The message of the last leader may not have been read, so it must stay:
		// the erasure that end sends would replace it.
		_ = t.lease.Release()
		return nil, &fault.Failure{Err: fault.ContextError(ctx)}
	}
	t.since = time.Now()
	// Invariant: a majority has recorded the term before Campaign or Run report
	// it. So a process that acts as a leader is found by every process that
	// asks for one.
	if err := e.write(ctx, t, value); err != nil {
		_ = e.end(ctx, t, nil)
		return nil, err
	}
	return t, nil
}

// lastWrite is in term.writes when the term has made its last write, so that no
// other write gets a higher seq.
const lastWrite = 1 << 62

// write records the value under the term, for as long as that lasts.
func (e *Election) write(ctx context.Context, t *term, value string) error {
	if err := t.over(); err != nil {
		return err
	}
	text, err := json.Marshal(record{ID: e.set.id, Value: value, Host: script.Hostname(), PID: os.Getpid(),
		Since: t.since})
	if err != nil {
		return fmt.Errorf("%w: %w", fault.ErrInvalid, err)
	}
	led, stop := t.lease.Derive(ctx)
	defer stop()
	switch n := t.writes.Add(1) - 1; {
	case n >= lastWrite:
		return &fault.Failure{Err: fault.ErrNotHeld} // the term ends at this moment
	case n == 0:
		err = e.reg.PutFirst(led, t.lease.Hold(), text)
	default:
		err = e.reg.Put(led, t.lease.Hold(), n, text, 0)
	}
	if over := t.over(); over != nil {
		return over
	}
	return err
}

// over says how the term has ended, or nil: ErrNotHeld when it was given up.
func (t *term) over() error {
	switch cause := context.Cause(t.lease.Context()); {
	case cause == nil:
		return nil
	case errors.Is(cause, fault.ErrReleased):
		return &fault.Failure{Err: fault.ErrNotHeld}
	default:
		return &fault.Failure{Err: cause}
	}
}

// end gives the term up, and fails when that had ended by itself. If the term
// has a successor, end waits until a majority has recorded who it is, or ctx
// ends, for a node timeout at most, and for half of what is left of the lease: it
// is released before it is lost. Otherwise end does not wait for the nodes.
// It is called once: see take.
func (e *Election) end(ctx context.Context, t *term, next *candidate) error {
	if !t.lease.Hold().Valid() && t.lease.Lost() == nil {
		t.lease.End(t.lease.Hold().Cause()) // the deadline has passed, but its timer has not fired yet
	}
	span, lost := t.lease.Finish(fault.ErrReleased)
	defer span.ReportHoldEnd()
	n := t.writes.Swap(lastWrite)
	if lost != nil {
		t.lease.Hold().Release() // see localqueue.Unlock
		return &fault.Failure{Err: lost}
	}
	if next == nil {
		e.reg.Retire(t.lease.Hold(), n, e.spec.Set.Retention)
		return nil
	}
	message, _ := json.Marshal(next.successor)
	wait := min(e.q.Rounds(e.set.Settings, 1), time.Until(t.lease.Hold().ValidUntil())/2)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	e.reg.RetireWith(ctx, t.lease.Hold(), n, e.spec.Set.Retention, message)
	return nil
}
