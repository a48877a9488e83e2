package core

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// The machine is suspended for longer than the lease. At the wake-up the hold
// is over, whichever method is called first.
func TestSuspendedHolder(t *testing.T) {
	t.Parallel()
	for what, over := range map[string]func(h Hold, ctx context.Context) bool{
		"Err":   func(_ Hold, ctx context.Context) bool { return ctx.Err() != nil },
		"Valid": func(h Hold, _ context.Context) bool { return !h.Valid() },
		"ValidUntil": func(h Hold, _ context.Context) bool {
			return h.a.q.Now() > 0 && h.ValidUntil().Before(time.Now())
		},
		"Extend": func(h Hold, ctx context.Context) bool {
			err := h.Renew(ctx)
			return assert.ErrorIs(t, err, fault.ErrLost)
		},
		"Done": func(h Hold, ctx context.Context) bool { // without a question; the wake-up tells
			h.a.q.woken()
			select {
			case <-ctx.Done():
				return true
			case <-time.After(20 * time.Second):
				return false
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			// Whose clock does not go on meanwhile, so no other hold has any use of it.
			q := idle(t, redistest.Start(t, 1))
			s, err := q.NewSpec(Spec{Name: what, Weight: 1, Capacity: 1, Set: &q.Set})
			require.NoError(t, err)
			l, err := q.AcquireLease(t.Context(), s, false, new(Single))
			require.NoError(t, err)
			ctx := l.Context()
			q.Clock.Suspend(q.Set.TTL / 2)
			require.NoError(t, ctx.Err())
			q.Clock.Suspend(q.Set.TTL / 2)
			assert.True(t, over(l.Hold(), ctx))
			l.Hold().Release()
		})
	}
}

// A context that is derived from several leases ends with each of them, even
// before a timer has fired.
func TestSuspendedHolderOfSeveralLeases(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var leases []*Lease
	for range 3 {
		q := idle(t, redistest.Start(t, 1))
		s, err := q.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 1, Set: &q.Set})
		require.NoError(t, err)
		l, err := q.AcquireLease(t.Context(), s, false, new(Single))
		require.NoError(t, err)
		inner, stop := l.Derive(ctx)
		defer stop()
		defer l.Hold().Release()
		ctx, leases = inner, append(leases, l)
	}
	require.NoError(t, ctx.Err())
	q := leases[0].Hold().a.q
	q.Clock.Suspend(q.Set.TTL / 2)
	q.Clock.Suspend(q.Set.TTL / 2)
	assert.Error(t, ctx.Err())
	assert.ErrorIs(t, context.Cause(ctx), fault.ErrLost)
	assert.NoError(t, leases[2].Context().Err(), "the others go on")
}

// If a hold is lost because the process was stopped, the error says so, and
// names no node.
func TestLossOfAStoppedProcess(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	log := make(lines, 1000)
	set := patient()
	set.Logger = slog.New(log)
	q, err := New([]redis.UniversalClient{c.Node(0).Client(), c.Node(1).Client(), c.Node(2).Client()}, set)
	require.NoError(t, err)
	defer func() { _ = q.Close(context.Background()) }()
	require.NoError(t, q.Bootstrap(within(t)))
	s, err := q.NewSpec(Spec{Name: "m", Weight: 1, Capacity: 1, Set: &q.Set})
	require.NoError(t, err)
	_, err = q.Acquire(within(t), s, false, new(Single))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		for i := range 3 {
			if q.Nodes.At(i).Err() != nil {
				return false
			}
		}
		return true
	}, time.Minute, time.Millisecond)
	q.Clock.Suspend(2 * set.TTL)
	q.woken()
	line := log.await(t, "a hold was lost")
	assert.Contains(t, line, "lock lost: this process did not run for 1")
	for i := range 3 {
		assert.NotContains(t, line, c.Node(i).Addr())
	}
}
