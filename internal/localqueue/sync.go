package localqueue

import (
	"context"
	"errors"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// What every primitive on a Queue does alike.

// MustLock locks and never returns unlocked: through outages it waits, and it
// panics if the name is unusable. Nodes that refuse for good are logged and
// asked again. When the Quorum is closed it does not return.
func (q *Queue) MustLock(op string, mode Mode) {
	core.Must(q.quorum, q.write, op, func() error {
		return core.WrapError(op, q.Name(), q.Lock(context.Background(), mode, false))
	})
}

// MustUnlock unlocks, and panics if it is not locked, as sync does. What was
// lost meanwhile is not there to be unlocked: that has been said.
func (q *Queue) MustUnlock(what string, mode Mode) {
	if _, err := q.Unlock(mode); errors.Is(err, fault.ErrNotHeld) {
		panic("quorate: " + what + " " + q.Name())
	}
}

// UnlockContext unlocks and waits until a majority has confirmed it.
// The goroutines of this process go on at once: only the caller waits for the
// nodes.
func (q *Queue) UnlockContext(ctx context.Context, mode Mode) error {
	released, err := q.Unlock(mode)
	if err == nil && released != nil {
		err = released.Released(ctx)
	}
	return err
}

// Do runs f while it is locked. f's context ends with ctx, and when the lock is
// lost. Unlock runs also when f panics, so that a panic that is recovered
// further up leaves nothing locked.
func (q *Queue) Do(ctx context.Context, op string, mode Mode, f func(ctx context.Context) error) (err error) {
	if err := q.Lock(ctx, mode, false); err != nil {
		return core.WrapError(op, q.Name(), err)
	}
	inner, stop := q.Lease(mode).Derive(ctx)
	defer func() {
		stop()
		if _, uerr := q.Unlock(mode); uerr != nil {
			err = errors.Join(err, core.WrapError(op, q.Name(), uerr))
		}
	}()
	return core.Labeled(inner, q.write.Kind, q.Name(), f)
}
