package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

func TestMisuse(t *testing.T) {
	t.Parallel()
	q := e2e.Open(t, cluster(t), e2e.Timing(quiet))
	m := mutex.New(q, "m")
	closed := e2e.Open(t, cluster(t), e2e.Timing(quiet))
	late := mutex.New(closed, "m")
	require.NoError(t, closed.Close())
	unusable := mutex.New(q, "a{b}")
	ctx := t.Context()
	zero := new(mutex.Mutex)

	for _, c := range []struct {
		what string
		call func()
		says string
	}{
		{"Unlock without Lock", m.Unlock, "unlock of unlocked mutex m"},
		{"zero Lock", zero.Lock, "use mutex.New"},
		{"zero TryLock", func() { zero.TryLock() }, "use mutex.New"},
		{"zero Unlock", zero.Unlock, "use mutex.New"},
		{"zero UnlockContext", func() { _ = zero.UnlockContext(ctx) }, "use mutex.New"},
		{"zero Do", func() { _ = zero.Do(ctx, nil) }, "use mutex.New"},
		{"zero Lease", func() { zero.Lease() }, "use mutex.New"},
		{"zero Extend", func() { _ = zero.Extend(ctx) }, "use mutex.New"},
		{"zero Holder", func() { _, _ = zero.Holder(ctx) }, "use mutex.New"},
		{"nil Quorum", func() { mutex.New(nil, "m") }, "use quorate.New or quorate.Connect"},
		{"zero Quorum", func() { mutex.New(new(quorate.Quorum), "m") }, "use quorate.New or quorate.Connect"},
		{"closing a zero Quorum", func() { _ = new(quorate.Quorum).Close() }, "use quorate.New or quorate.Connect"},
		{"nil option", func() { mutex.New(q, "m", nil) }, "mutex.New: invalid use: option 0 is nil; remove it"},
		{"wrong option", func() { mutex.New(q, "m", quorate.WithTTL(-1)) }, "WithTTL(-1ns)"},
		{"contradicting option", func() { mutex.New(q, "m", quorate.WithTTL(time.Hour)) }, "WithGuard"},
		{"Lock of an unusable name", unusable.Lock, "contains a brace"},
		{"Unlock after Close", late.Unlock, "unlock of unlocked mutex m"},
	} {
		t.Run(c.what, func(t *testing.T) { assert.Contains(t, panicText(c.call), c.says) })
	}

	assert.ErrorIs(t, m.UnlockContext(ctx), quorate.ErrNotHeld)
	assert.ErrorIs(t, late.LockContext(ctx), quorate.ErrClosed)
	assert.ErrorIs(t, late.TryLockContext(ctx), quorate.ErrClosed)
	assert.ErrorIs(t, late.Do(ctx, func(context.Context) error { return nil }), quorate.ErrClosed)
	_, err := late.Holder(ctx)
	assert.ErrorIs(t, err, quorate.ErrClosed)
	assert.False(t, unusable.TryLock())
	_, err = unusable.Holder(ctx)
	assert.ErrorIs(t, err, quorate.ErrInvalid)
}

// panicText is what a call panics with, or empty.
func panicText(call func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	call()
	return ""
}

func TestEndedContext(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	m := mutex.New(q, "m")
	reason := errors.New("the user has gone away")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	expired, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()

	before := commands(t, c)
	for _, lock := range []func(context.Context) error{m.LockContext, m.TryLockContext} {
		err := lock(cancelled)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, reason)
		assert.ErrorIs(t, lock(expired), context.DeadlineExceeded)
	}
	assert.Equal(t, before, commands(t, c), "not even asked for")
	require.True(t, m.TryLock(), "nothing remains")

	// One that ends while the nodes are asked.
	other := mutex.New(q, "m")
	ctx, cancel2 := context.WithCancelCause(t.Context())
	waiting := lockLater(ctx, t, other)
	waiters(t, m, 1)
	cancel2(reason)
	err := e2e.Receive(t, waiting)
	var e *quorate.Error
	require.ErrorAs(t, err, &e)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, reason)
	assert.ErrorIs(t, err, quorate.ErrHeld)
	assert.Equal(t, "lock", e.Op)
	assert.Equal(t, 2, e.Needed)
	assert.Zero(t, e.Votes)
	assert.ErrorContains(t, err, "others are ahead")
	waiters(t, m, 0)
	m.Unlock()
}

func TestVetCatchesACopy(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "vet", "./testdata/copied").CombinedOutput()
	require.Error(t, err, "%s", out)
	for _, how := range []string{
		"byValue passes lock by value: github.com/quorate/quorate/mutex.Mutex",
		"assignment copies lock value to b",
		"range var m copies lock",
	} {
		assert.Contains(t, string(out), how)
	}
	assert.Equal(t, 3, strings.Count(string(out), "copied.go:"), "%s", out)
}

// A goroutine that unlocks what it has not locked may do so just as another one
// gets the lock. That one then finds no hold, and the library says so.
func TestUnlockRacesLock(t *testing.T) {
	t.Parallel()
	q := quoratetest.New(t, 1).Quorum(quorate.WithTracer(noTracer{}))
	m, g := mutex.New(q, "m"), mutex.All(q, []string{"a", "b"})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for name, call := range map[string]func(){
		"Lock": func() { _ = m.LockContext(ctx) }, "Unlock": m.Unlock, "Do": func() { _ = m.Do(ctx, nothing) },
		"Unlock of a Group": g.Unlock, "Do of a Group": func() { _ = g.Do(ctx, nothing) },
	} {
		all.Go(func() {
			for ctx.Err() == nil {
				if says := panicText(call); says != "" && !strings.Contains(says, "unlock of unlocked") {
					t.Error(name, says)
					break
				}
			}
		})
	}
	all.Wait()
}

func nothing(context.Context) error { return nil }

// noTracer is a tracer that notes nothing.
type noTracer struct{}

func (noTracer) AcquireStart(ctx context.Context, _ quorate.AcquireInfo) context.Context { return ctx }
func (noTracer) AcquireEnd(context.Context, quorate.AcquireResult)                       {}
func (noTracer) HoldEnd(context.Context, quorate.HoldResult)                             {}
