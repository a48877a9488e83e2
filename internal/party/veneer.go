package party

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/core"
)

// What every primitive on a Party does alike.

// MustLock locks and never returns unlocked: through outages it waits, and it
// panics if the name is unusable. Nodes that refuse for good are told to the
// log and asked again. When the Quorum is closed it does not return.
func (p *Party) MustLock(op string, mode Mode) {
	for {
		err := core.Dress(op, p.Name(), p.Lock(context.Background(), mode, false))
		switch {
		case err == nil:
			return
		case errors.Is(err, core.ErrClosed):
			core.NeverReturn(p.set().Logger, err)
		case core.Misuse(err):
			panic(err)
		}
		p.set().Logger.Error("quorate: "+op+" goes on trying", "name", p.Name(), "error", err)
		time.Sleep(time.Second)
	}
}

// MustUnlock unlocks, and panics if it is not locked, as sync does. What was
// lost meanwhile is not there to be unlocked: that has been said.
func (p *Party) MustUnlock(what string, mode Mode) {
	if _, err := p.Unlock(mode); errors.Is(err, core.ErrNotHeld) {
		panic("quorate: " + what + " " + p.Name())
	}
}

// UnlockContext unlocks and waits until a majority has confirmed it.
func (p *Party) UnlockContext(ctx context.Context, mode Mode) error {
	released, err := p.Unlock(mode)
	if err == nil && released != nil {
		err = released.Released(ctx)
	}
	return err
}

// Do runs f while it is locked. f's context ends with ctx, and when the lock
// is lost.
func (p *Party) Do(ctx context.Context, op string, mode Mode, f func(ctx context.Context) error) (err error) {
	if err := p.Lock(ctx, mode, false); err != nil {
		return core.Dress(op, p.Name(), err)
	}
	inner, stop := p.Lease(mode).Derive(ctx)
	defer func() {
		stop()
		if _, uerr := p.Unlock(mode); uerr != nil {
			err = errors.Join(err, core.Dress(op, p.Name(), uerr))
		}
	}()
	return f(inner)
}
