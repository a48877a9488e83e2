package core

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

func held(t *testing.T, q *Quorum, name string) Hold {
	t.Helper()
	s, err := q.NewSpec(Spec{Name: name, Weight: 1, Capacity: 1, Set: &q.Set})
	require.NoError(t, err)
	h, err := q.Acquire(t.Context(), s, false, nil)
	require.NoError(t, err)
	return h
}

// ended checks ctx without waiting, not even for another goroutine to run.
func ended(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// A node that gets the leave lets the next holder in.
func TestOwnerHearsOfALossBeforeTheNodes(t *testing.T) {
	t.Parallel()
	first, left := loss(t)
	assert.True(t, first, "a leave has been sent before")
	assert.True(t, left, "it is sent afterwards")
}

// loss makes a holder lose its hold. first reports whether the node still had
// the claim when the owner was called, and left whether the claim was gone
// afterwards.
func loss(t *testing.T) (first, left bool) {
	c := redistest.Start(t, 1)
	q := idle(t, c)
	s, err := q.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 1, Set: &q.Set})
	require.NoError(t, err)
	kept := func() bool {
		_, err := q.Nodes.At(0).Do(t.Context(), "PING") // after what was sent before
		require.NoError(t, err)
		return c.Node(0).Client().Exists(t.Context(), "n").Val() == 1
	}
	l, err := q.AcquireLease(t.Context(), s, false, &Single{OnEnd: func() { first = kept() }})
	require.NoError(t, err)
	require.True(t, kept())
	l.Hold().a.event(func(c *process.Attempt, now protocol.Time) { c.ShortenLeases(now, 1, time.Hour) })
	return first, !kept()
}

// A node that gets the leave lets the next holder in.
func TestContextsEndBeforeALeaveIsSent(t *testing.T) {
	t.Parallel()
	assert.True(t, contextsEndBeforeLeaves(t))
}

// leaves is a connection to a node that calls left before each leave of a
// claim.
type leaves struct {
	transport.Transport
	left func()
}

func (l leaves) Append(cmd transport.Command, u transport.Urgency) transport.Fate {
	if c, ok := cmd.(*call); ok && c.req.Op == protocol.OpLeave {
		l.left()
	}
	return l.Transport.Append(cmd, u)
}

// contextsEndBeforeLeaves reports whether the contexts of a lease that is
// released have ended when its leave is sent.
func contextsEndBeforeLeaves(t *testing.T) bool {
	released, before := false, false
	var ctx context.Context
	set := setup.Defaults()
	set.Connect = func(client redis.UniversalClient, cfg transport.Config) (transport.Transport, error) {
		way, err := transport.NewOrdered(client, cfg)
		return leaves{way, func() { released, before = true, ended(ctx) }}, err
	}
	q := declared(t, redistest.Start(t, 1), set)
	l := held(t, q, "n").Lease(0)
	outer, stop := l.Derive(t.Context())
	defer stop()
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	require.NoError(t, l.Release())
	require.True(t, released)
	return before
}

// What is sent after End lets the next holder in.
func TestContextsHaveEndedWhenEndReturns(t *testing.T) {
	t.Parallel()
	h := held(t, idle(t, redistest.Start(t, 1)), "n")
	type key struct{}
	outer := context.WithValue(t.Context(), key{}, "value")
	for range 100 {
		l := h.Lease(0)
		inner, stop := l.Derive(outer)
		over, stopOver := l.Derive(outer)
		child, cancel := context.WithCancel(inner)
		all := []context.Context{l.Context(), inner, child}
		for _, ctx := range all {
			require.NoError(t, ctx.Err())
		}
		assert.Equal(t, "value", child.Value(key{}))
		stopOver()
		require.True(t, ended(over))
		assert.ErrorIs(t, context.Cause(over), fault.ErrReleased)
		require.False(t, ended(inner), "another's end")

		l.End(fault.ErrLost)
		require.ErrorIs(t, l.Lost(), fault.ErrLost)
		for i, ctx := range all {
			require.True(t, ended(ctx), "context %d", i)
			require.ErrorIs(t, context.Cause(ctx), fault.ErrLost)
		}
		late, stopLate := l.Derive(outer)
		require.True(t, ended(late), "derived after the end")
		stop()
		stopLate()
		cancel()
		assert.Same(t, l.leaseContext, l.leaseContext.next, "nothing is left of what was derived")
	}
	h.Release()
}

func TestDerivedContextEndsWithItsParent(t *testing.T) {
	t.Parallel()
	h := held(t, idle(t, redistest.Start(t, 1)), "n")
	l := h.Lease(0)
	outer, cancel := context.WithCancelCause(t.Context())
	inner, stop := l.Derive(outer)
	defer stop()
	cancel(context.DeadlineExceeded)
	require.True(t, ended(inner))
	assert.ErrorIs(t, context.Cause(inner), context.DeadlineExceeded)
	assert.NoError(t, l.Context().Err(), "the end of the caller's context does not end the hold")
	h.Release()
}

// An answer renews the claim at the moment when a context is asked for its
// error: the context must not report the end of a claim that is still renewed.
func TestContextOfARenewedClaimGoesOn(t *testing.T) {
	t.Parallel()
	h := held(t, idle(t, redistest.Start(t, 1)), "n")
	ctx := h.Lease(0).Context()
	h.a.packed.Store(int64(unrenewed)) // the deadline before the renewal, long past
	require.False(t, h.Valid())
	assert.NoError(t, ctx.Err())
	assert.True(t, h.Valid())
	h.Release()
}

// Deriving a context calls Err of the parent, which may belong to the lease
// itself and find that its deadline has passed.
func TestDeriveFromAnEndedContextOfALeaseThatIsOver(t *testing.T) {
	t.Parallel()
	h := held(t, idle(t, redistest.Start(t, 1)), "n")
	l := h.Lease(0)
	outer, stopOuter := l.Derive(t.Context())
	inner, stop := l.Derive(outer)
	stop()
	h.a.event(func(c *process.Attempt, now protocol.Time) { c.ShortenLeases(now, 1, time.Hour) })
	require.False(t, h.Valid())
	derived := make(chan context.Context, 1)
	go func() {
		ctx, stop := l.Derive(inner)
		stop()
		derived <- ctx
	}()
	select {
	case ctx := <-derived:
		stopOuter()
		assert.True(t, ended(ctx))
		assert.ErrorIs(t, l.Lost(), fault.ErrLost)
	case <-time.After(10 * time.Second):
		t.Fatal("the lease waits for itself")
	}
}
