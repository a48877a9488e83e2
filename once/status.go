package once

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// Status asks the nodes whether the work is done, and which process did it and
// when, or which process is running it. It does not wait for the work. It fails
// with [quorate.ErrNoQuorum] if too few nodes answer within two node timeouts
// or before ctx ends, and with [quorate.ErrHeld] if another library holds the
// name's key. The answer may be out of date by the time it arrives.
func (o *Once) Status(ctx context.Context) (Status, error) {
	o.usable()
	s, err := o.status(ctx)
	return s, o.wrapError("status", err)
}

func (o *Once) status(ctx context.Context) (Status, error) {
	if o.err != nil {
		return Status{}, o.err
	}
	asked, cancel := context.WithTimeout(ctx, o.q.Rounds(o.set.Settings, 2))
	defer cancel()
	var same core.Holder // has been seen since
	var since time.Time
	for {
		// The other way round a run that ends in between would be seen as
		// neither.
		h, herr := o.q.Onlooker().Holder(ctx, o.spec)
		if herr != nil && !errors.Is(herr, fault.ErrNotHeld) {
			return Status{}, herr
		}
		rec, err := o.reg.Read(asked)
		switch f, ok := errors.AsType[*fault.Failure](err); {
		case ok && asked.Err() != nil && ctx.Err() == nil:
			f.Err = fault.ErrNoQuorum // it was not the user's context that ended
			return Status{}, f
		case err != nil:
			return Status{}, err
		case rec.Exists:
			c, err := completed(rec)
			if err != nil {
				return Status{}, err
			}
			return Status{State: Done, Host: c.Host, PID: c.PID, Token: c.Token, When: c.When,
				Until: c.Until}, nil
		}
		if h.Token != same.Token || since.IsZero() {
			same, since = h, time.Now()
		}
		switch {
		case rec.Undecided && (herr != nil || time.Since(since) < o.set.NodeTimeout):
			// It may be done. The holder of the name may run the work, which
			// then is not done, or only be finding out for its own Status: that
			// does not take long.
			select {
			case <-time.After(o.set.NodeTimeout / 16):
			case <-asked.Done():
			}
		case herr != nil:
			return Status{State: NotStarted}, nil
		case h.Foreign:
			return Status{}, fmt.Errorf("%w: another library holds the key of that name, for %v",
				fault.ErrHeld, h.Left)
		default:
			// Its ticket tells when it was claimed: the nodes' clocks in
			// microseconds, or little more where others have claimed at the
			// same time.
			claimed := time.UnixMicro(int64(h.Token / core.MaxPasses))
			return Status{State: Running, Host: h.Host, PID: h.PID, Token: h.Token, When: claimed,
				Waiters: h.Waiters}, nil
		}
	}
}

// Holder asks the nodes which process is running the work. It returns
// [quorate.ErrNotHeld] if no process is. The answer may be out of date by the
// time it arrives.
func (o *Once) Holder(ctx context.Context) (quorate.Holder, error) {
	o.usable()
	if o.err != nil {
		return quorate.Holder{}, o.wrapError("holder", o.err)
	}
	h, err := o.q.Onlooker().Holder(ctx, o.spec)
	return quorate.Holder(h), o.wrapError("holder", err)
}

// Reset marks the work as not done, so that the next call runs it again. It
// waits for its turn, so it never interrupts work in progress, and then waits
// until a majority of the nodes has confirmed. Reset also clears what this
// value remembers, but other values and processes that already know that the
// work is done do not ask the nodes again.
//
// If Reset fails, the work may or may not have been marked. The nodes remember
// a Reset forever, or for as long as [KeepFor] says; use the same KeepFor as
// for the work.
func (o *Once) Reset(ctx context.Context) error {
	o.usable()
	return o.wrapError("reset", o.reset(ctx))
}

func (o *Once) reset(ctx context.Context) error {
	if err := o.enter(ctx); err != nil {
		return err
	}
	defer func() { <-o.turn }()
	o.done.Store(nil)
	var err error
	for again := (core.Retry{}); ; again.Wait(ctx, o.q, o.spec.Name, err) {
		var t *core.Lease
		if t, err = o.q.AcquireLease(ctx, o.spec, false, new(core.Single)); err != nil {
			return closed(ctx, err)
		}
		if err = closed(ctx, o.erase(ctx, t)); !errors.Is(err, fault.ErrLost) || ctx.Err() != nil {
			return err
		}
	}
}

func (o *Once) erase(ctx context.Context, t *core.Lease) error {
	defer t.Release()
	rec, err := o.reg.Open(ctx, t.Hold())
	if err != nil {
		return err
	}
	return o.reg.Erase(ctx, t.Hold(), 0, o.erasure(rec))
}

// erasure is how long the nodes must remember that rec was erased: as long as a
// node that missed the erasure may keep the record. Otherwise the work would
// count as done again once the other nodes have forgotten the erasure.
func (o *Once) erasure(rec core.Record) time.Duration {
	if !rec.Exists {
		return o.set.keep // what is recorded by others of this name
	}
	// Another process may have recorded it for longer than the settings here
	// say.
	if c, err := completed(rec); err != nil || !c.expires || c.Until.Sub(c.When) > o.set.keep {
		return 0
	}
	return o.set.keep
}
