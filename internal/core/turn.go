package core

// This file owns the wait for a claim that another process may make needless.

import "context"

// Turn is a claim that is held, with its lease.
type Turn struct {
	Hold  *Hold
	Lease *Lease
}

// Release gives the claim back, if it is still held.
func (t *Turn) Release() { _ = t.Lease.Release() }

// Turn waits for a claim. If it fails, nothing is left of it.
func (q *Quorum) Turn(ctx context.Context, s *Spec) (*Turn, error) {
	hold, lease, err := q.AcquireLease(ctx, s, false, func(l *Lease, cause error) { l.End(cause) })
	if err != nil {
		return nil, err
	}
	return &Turn{hold, lease}, nil
}

// TurnUnless waits for a claim, or until what is recorded makes it needless:
// then t and err are nil. Without the latter a thousand waiters would get their
// turns one after the other, with nothing to do. enough is called from another
// goroutine.
// Invariant: the caller's goroutine waits for the claim, because there the
// tracer is called. In a goroutine of its own a panic of the tracer would end
// the process.
func (r *Register) TurnUnless(ctx context.Context, enough func(Record) bool) (t *Turn, found Record, err error) {
	watch := r.Watch()
	defer watch.Close()
	ctx, cancel := context.WithCancel(ctx)
	needless := false
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		found, needless = watch.await(ctx, enough)
		cancel()
	}()
	stop := func() {
		cancel()
		<-watched
	}
	defer stop() // also when the tracer panics
	t, err = r.q.Turn(ctx, r.spec)
	if stop(); !needless {
		return t, Record{}, err
	}
	if t != nil {
		t.Release()
	}
	return nil, found, nil
}

// await waits until enough accepts what is recorded, or the context ends. An
// error of the watch is the claim's as well.
func (w *Watch) await(ctx context.Context, enough func(Record) bool) (Record, bool) {
	for {
		select {
		case <-ctx.Done():
			return Record{}, false
		case <-w.Changed():
		}
		if rec, known, _ := w.Latest(); known && enough(rec) {
			return rec, true
		}
	}
}
