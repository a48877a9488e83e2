package once

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
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
	Encoded [][]byte  `json:"values,omitempty"`

	expires bool
}

// format is the Version that is written.
const format = 1

func completed(rec core.Record) (*completion, error) {
	c := &completion{}
	if err := json.Unmarshal(rec.Value, c); err != nil || c.Version != format {
		return nil, fmt.Errorf("%w: this name is in use by another primitive, or by a newer version; "+
			"choose another name", fault.ErrInvalid)
	}
	c.expires = !c.Until.IsZero()
	return c, nil
}

// runner runs the work for the goroutines of a process that share a Once.
type runner struct {
	// done is what is known here of the recorded run. It is first because it
	// is all that the hot path looks at.
	done atomic.Pointer[completion]
	q    *core.Quorum
	spec *core.Spec
	reg  *core.Register
	set  settings
	err  error         // of the name; every call that would ask the nodes tells it
	turn chan struct{} // full while a goroutine acts for all of this process
	runs atomic.Bool   // f runs in that goroutine
}

// known returns what is known here of the recorded run, as long as it is kept.
func (r *runner) known() *completion {
	c := r.done.Load()
	if c != nil && c.expires && !time.Now().Before(c.Until) {
		return nil
	}
	return c
}

// know keeps what a node has told.
func (r *runner) know(rec core.Record) (*completion, error) {
	c, err := completed(rec)
	if err == nil {
		r.done.Store(c)
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
func (r *runner) do(ctx context.Context, w work) (*completion, error) {
	if c := r.known(); c != nil {
		return c, nil
	}
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer func() { <-r.turn }()
	if c := r.known(); c != nil { // another goroutine has seen to it
		return c, nil
	}
	// Most callers come long after the work was done, so ask before claiming.
	// When the nodes cannot be asked, the claim waits for them, and has their
	// errors. A record that is undecided does not exist yet: the claim finds
	// out.
	rec, err := r.reg.Read(ctx)
	switch {
	case err == nil && rec.Exists:
		return r.know(rec)
	case err != nil && ctx.Err() != nil:
		return nil, err
	}
	for again := (core.Retry{}); ; again.Wait(ctx, r.q, r.spec.Name, errLostBefore) {
		t, rec, err := r.reg.TurnUnless(ctx, func(rec core.Record) bool { return rec.Exists })
		switch {
		case err != nil:
			return nil, closed(ctx, err)
		case t == nil:
			return r.know(rec)
		}
		if c, err := r.run(ctx, t, w); err != errLostBefore {
			return c, err
		}
	}
}

// enter waits until this goroutine acts for the process.
func (r *runner) enter(ctx context.Context) error {
	if r.err != nil {
		return r.err
	}
	return core.Enter(ctx, r.q, r.turn, r.runs.Load)
}

// errLostBefore says that the claim was lost before f was called: try again.
var errLostBefore = errors.New("lost before the work began")

// leaseKey is where f's context has its lease.
type leaseKey struct{}

// Lease returns the hold under which f runs. ctx is the context that
// [Once.DoContext] or [ValueContext] passed to f, or one derived from it; for any
// other context Lease returns nil. Use the token of the hold to fence what f writes to.
func Lease(ctx context.Context) quorate.Lease {
	if l, ok := ctx.Value(leaseKey{}).(*core.Lease); ok {
		return l
	}
	return nil
}

// run runs f under the claim, unless it turns out that it has been done, and
// releases the claim however that ends: also when f panics or ends its
// goroutine.
func (r *runner) run(ctx context.Context, t *core.Lease, w work) (*completion, error) {
	inner, stop := t.Derive(context.WithValue(ctx, leaseKey{}, t))
	// A run that comes to nothing has nothing to erase: f only runs where
	// nothing is recorded, and nothing is recorded before it has returned.
	defer func() {
		stop()
		_ = t.Release()
	}()

	// First, see to it that no earlier run is recorded from here on.
	rec, err := r.reg.Open(inner, t.Hold())
	if err == nil && rec.Exists {
		return r.know(rec)
	}
	if err == nil && r.set.durable {
		err = durable(inner, r.q)
	}
	if err != nil {
		return nil, before(ctx, t, err)
	}
	values, err := r.call(inner, t, w.f)
	if own, ok := err.(*failed); ok {
		own.lost = t.Lost()
	}
	if err != nil {
		return nil, err
	}
	return r.record(ctx, t, values, w.insist)
}

// call calls f. Where nothing is recorded, nodes forget after protocol.Remember
// that this run has begun. So a run that takes long records that the work is not
// done yet. The nodes keep that forever: a node that missed it may have what an
// earlier run recorded.
func (r *runner) call(ctx context.Context, t *core.Lease,
	f func(context.Context) ([][]byte, error)) ([][]byte, error) {
	r.runs.Store(true)
	defer r.runs.Store(false)
	long := time.AfterFunc(protocol.Remember/4, func() {
		_ = r.reg.Erase(context.WithoutCancel(ctx), t.Hold(), notDone, 0) //mutant:RuleLongRun
	})
	defer long.Stop()
	return f(ctx)
}

// The writes of a run, in their order.
const (
	notDone = iota
	isDone
)

// before translates a failure that happened under the claim, before f was
// called. The context in use also ends with the claim. Invariant: that does
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

// record records that the work is done. It continues if the claim is lost
// in the meantime: the nodes refuse to overwrite a later run. With insist it tries
// again where they refuse otherwise, until such a run or the Quorum's end.
func (r *runner) record(ctx context.Context, t *core.Lease, values [][]byte,
	insist bool) (*completion, error) {
	now := time.Now().Round(0) // the wall clock: it goes on while the machine sleeps
	c := &completion{Version: format, Token: t.Token(), When: now, Host: script.Hostname(), PID: os.Getpid(),
		Encoded: values}
	if r.set.keep > 0 {
		c.Until, c.expires = now.Add(r.set.keep), true
	}
	value, err := json.Marshal(c)
	if err != nil {
		return nil, notRecorded(err)
	}
	ctx, end := lasting(ctx, r.q.Rounds(r.set.Settings, 1))
	defer end()
	for {
		err = closed(ctx, r.reg.Put(ctx, t.Hold(), isDone, value, r.set.keep))
		if !insist || err == nil || errors.Is(err, fault.ErrLost) || errors.Is(err, fault.ErrClosed) {
			break
		}
		core.LogAndPause(ctx, r.q, r.spec, "once", core.WrapError("record", r.spec.Name, notRecorded(err)))
	}
	if errors.Is(err, fault.ErrLost) {
		// A later run has begun. If it has found this one on some node, all is
		// well.
		if rec, rerr := r.reg.Read(ctx); rerr == nil && rec.Exists && bytes.Equal(rec.Value, value) {
			return r.know(rec)
		}
	}
	if err != nil {
		return nil, notRecorded(err)
	}
	r.done.Store(c)
	return c, nil
}
