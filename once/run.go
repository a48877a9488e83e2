package once

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/script"
)

// completion is a run that has been recorded.
type completion struct {
	Version int       `json:"once"`  // of this format
	Token   uint64    `json:"token"` // a node that is repaired may have it under another
	When    time.Time `json:"when"`
	Until   time.Time `json:"until,omitzero"` // zero: forever
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Values  [][]byte  `json:"values,omitempty"`

	expires bool
}

// format is the Version that is written.
const format = 1

func completed(rec core.Record) (*completion, error) {
	c := &completion{}
	if err := json.Unmarshal(rec.Value, c); err != nil || c.Version != format {
		return nil, fmt.Errorf("%w: what is recorded under this name is not a once's; it is another primitive's, or a newer version's", fault.ErrInvalid)
	}
	c.expires = !c.Until.IsZero()
	return c, nil
}

// known returns what is known here of the recorded run, as long as it is kept.
func (o *Once) known() *completion {
	c := o.done.Load()
	if c != nil && c.expires && !time.Now().Before(c.Until) {
		return nil
	}
	return c
}

// know keeps what a node has told.
func (o *Once) know(rec core.Record) (*completion, error) {
	c, err := completed(rec)
	if err == nil {
		o.done.Store(c)
	}
	return c, err
}

type work struct {
	// f returns the encoded values that it has made. An error of the user's
	// function is a *failed.
	f func(ctx context.Context) (values [][]byte, err error)
	// insist: what is done is recorded, however long the nodes refuse that. The
	// caller gets no error, so it would only do the work again.
	insist bool
}

// do returns the recorded run, and runs f if there is none.
func (o *Once) do(ctx context.Context, w work) (*completion, error) {
	o.usable()
	if c := o.known(); c != nil {
		return c, nil
	}
	if err := o.enter(ctx); err != nil {
		return nil, err
	}
	defer func() { <-o.turn }()
	if c := o.known(); c != nil { // another goroutine has seen to it
		return c, nil
	}
	// Most callers come long after the work was done, so ask before claiming.
	// When the nodes cannot be asked, the claim waits for them, and has their
	// errors. A record that is undecided does not exist yet: the claim finds
	// out.
	rec, err := o.reg.Read(ctx)
	switch {
	case err == nil && rec.Exists:
		return o.know(rec)
	case err != nil && ctx.Err() != nil:
		return nil, err
	}
	for again := (core.Retry{}); ; again.Wait(ctx, o.q, o.spec.Name, errLostBefore) {
		t, rec, err := o.reg.TurnUnless(ctx, func(rec core.Record) bool { return rec.Exists })
		switch {
		case err != nil:
			return nil, closed(ctx, err)
		case t == nil:
			return o.know(rec)
		}
		if c, err := o.run(ctx, t, w); err != errLostBefore {
			return c, err
		}
	}
}

// enter waits until this goroutine acts for the process.
func (o *Once) enter(ctx context.Context) error {
	if o.err != nil {
		return o.err
	}
	return o.q.Enter(ctx, o.turn, o.runs.Load)
}

// errLostBefore says that the claim was lost before f was called: try again.
var errLostBefore = errors.New("lost before the work began")

// leaseKey is where f's context has its lease.
type leaseKey struct{}

// Lease returns the hold under which f runs, of the context that f got from
// [Once.DoContext] or [ValueContext]; nil for any other context. Its token is
// the one to fence with what f writes to, and it is recorded with the work.
func Lease(ctx context.Context) quorate.Lease {
	if l, ok := ctx.Value(leaseKey{}).(*core.Lease); ok {
		return l
	}
	return nil
}

// run runs f under the claim, unless it turns out that it has been done, and
// releases the claim however that ends: also when f panics or ends its
// goroutine.
func (o *Once) run(ctx context.Context, t *core.Lease, w work) (*completion, error) {
	inner, stop := t.Derive(context.WithValue(ctx, leaseKey{}, t))
	// A run that comes to nothing has nothing to erase: f only runs where
	// nothing is recorded, and nothing is recorded before it has returned.
	defer func() {
		stop()
		_ = t.Release()
	}()

	// First, see to it that no earlier run is recorded from here on.
	rec, err := o.reg.Open(inner, t.Hold())
	if err == nil && rec.Exists {
		return o.know(rec)
	}
	if err == nil {
		err = o.durable(inner)
	}
	if err != nil {
		return nil, before(ctx, t, err)
	}
	values, err := o.call(inner, w.f)
	if own, ok := err.(*failed); ok {
		own.lost = t.Lost()
	}
	if err != nil {
		return nil, err
	}
	return o.record(ctx, t, values, w.insist)
}

func (o *Once) call(ctx context.Context, f func(context.Context) ([][]byte, error)) ([][]byte, error) {
	o.runs.Store(true)
	defer o.runs.Store(false)
	return f(ctx)
}

// before is what a failure under the claim means before f was called. The
// context that it was tried with ends with the claim, too. Invariant: that does
// not look like the end of the caller's own context.
func before(ctx context.Context, t *core.Lease, err error) error {
	lost := t.Lost()
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, fault.ErrClosed) || errors.Is(lost, fault.ErrClosed):
		return &fault.Failure{Err: fault.ErrClosed}
	case errors.Is(err, fault.ErrLost) || errors.Is(lost, fault.ErrLost):
		return errLostBefore
	}
	return err
}

// closed reduces the error of a closed Quorum to just that: what the closed
// connections ended with may look like the caller's context.
func closed(ctx context.Context, err error) error {
	if ctx.Err() == nil && errors.Is(err, fault.ErrClosed) {
		return &fault.Failure{Err: fault.ErrClosed}
	}
	return err
}

// record records that the work is done. It goes on when the claim is lost
// meanwhile: the nodes refuse a record over a later run. With insist it tries
// again where they refuse otherwise, until such a run or the Quorum's end.
func (o *Once) record(ctx context.Context, t *core.Lease, values [][]byte, insist bool) (*completion, error) {
	now := time.Now().Round(0) // the wall clock: it goes on while the machine sleeps
	c := &completion{Version: format, Token: t.Token(), When: now, Host: script.Hostname(), PID: os.Getpid(), Values: values}
	if o.set.keep > 0 {
		c.Until, c.expires = now.Add(o.set.keep), true
	}
	value, err := json.Marshal(c)
	if err != nil {
		return nil, notRecorded(err)
	}
	ctx, end := lasting(ctx, o.q.Rounds(o.set.Settings, 1))
	defer end()
	for {
		err = closed(ctx, o.reg.Put(ctx, t.Hold(), 0, value, o.set.keep))
		if !insist || err == nil || errors.Is(err, fault.ErrLost) || errors.Is(err, fault.ErrClosed) {
			break
		}
		core.TryAgain(ctx, o.q, o.spec, "once", core.WrapError("record", o.spec.Name, notRecorded(err)))
	}
	if errors.Is(err, fault.ErrLost) {
		// A later run has begun. If it has found this one on some node, all is
		// well.
		if rec, rerr := o.reg.Read(ctx); rerr == nil && rec.Exists && bytes.Equal(rec.Value, value) {
			return o.know(rec)
		}
	}
	if err != nil {
		return nil, notRecorded(err)
	}
	o.done.Store(c)
	return c, nil
}

// lasting returns a context that ends with ctx, but not before d is over.
func lasting(ctx context.Context, d time.Duration) (context.Context, func()) {
	l := &late{Context: ctx, done: make(chan struct{})}
	least, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	stop := context.AfterFunc(ctx, func() {
		<-least.Done()
		close(l.done)
	})
	return l, func() { stop(); cancel() }
}

// late is a context that ends for the same reason as another, but later.
type late struct {
	context.Context
	done chan struct{}
}

func (*late) Deadline() (time.Time, bool) { return time.Time{}, false }

func (l *late) Done() <-chan struct{} { return l.done }

func (l *late) Err() error {
	select {
	case <-l.done:
		return l.Context.Err()
	default:
		return nil
	}
}
