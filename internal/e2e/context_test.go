package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// Every context that is handed out for a hold says that the hold has ended from
// the deadline on, though no goroutine of the library has run since: the one
// that uses the context asks it right at the deadline, without a pause.
func TestContextsEndAtTheDeadline(t *testing.T) {
	t.Parallel()
	const ttl = 200 * time.Millisecond
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(ttl))
	ctx, noRenewal := t.Context(), quorate.WithoutRenewal()
	m, rw := mutex.New(q, "mutex", noRenewal), rwmutex.New(q, "rwmutex", noRenewal)
	rd := rwmutex.New(q, "readers", noRenewal)
	use := func(t *testing.T, ctx context.Context, lease quorate.Lease) {
		t.Helper()
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		for time.Now().Before(lease.ValidUntil()) { // a late answer of the third node may prolong it
		}
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		assert.ErrorIs(t, context.Cause(ctx), quorate.ErrLost)
		e2e.Receive(t, child.Done()) // which the scheduler's goroutine may be about to end
		assert.ErrorIs(t, context.Cause(child), quorate.ErrLost)
		select {
		case <-ctx.Done():
		default:
			assert.Fail(t, "Err says that the context has ended, and Done does not")
		}
	}
	for name, hold := range map[string]func(t *testing.T){
		"the lease's": func(t *testing.T) {
			m := mutex.New(q, "lease", noRenewal)
			require.NoError(t, m.LockContext(ctx))
			use(t, m.Lease().Context(), m.Lease())
			assert.ErrorIs(t, m.UnlockContext(ctx), quorate.ErrLost)
		},
		"mutex.Do": func(t *testing.T) {
			assert.ErrorIs(t, m.Do(ctx, func(ctx context.Context) error {
				use(t, ctx, m.Lease())
				return nil
			}), quorate.ErrLost)
		},
		"rwmutex.Do": func(t *testing.T) {
			assert.ErrorIs(t, rw.Do(ctx, func(ctx context.Context) error {
				use(t, ctx, rw.Lease())
				return nil
			}), quorate.ErrLost)
		},
		"rwmutex.RDo": func(t *testing.T) {
			assert.ErrorIs(t, rd.RDo(ctx, func(ctx context.Context) error {
				use(t, ctx, rd.RLease())
				return nil
			}), quorate.ErrLost)
		},
		"semaphore": func(t *testing.T) {
			l, err := semaphore.NewWeighted(q, "permits", 2, noRenewal).AcquireLease(ctx, 1)
			require.NoError(t, err)
			use(t, l.Context(), l)
			assert.ErrorIs(t, l.Release(), quorate.ErrLost)
		},
		"once": func(t *testing.T) {
			assert.NoError(t, once.New(q, "once", noRenewal).DoContext(ctx, func(ctx context.Context) error {
				use(t, ctx, once.Lease(ctx))
				return nil
			}))
		},
		"leader.Run": func(t *testing.T) {
			assert.ErrorIs(t, leader.New(q, "leader", leader.WithID("a"), leader.WithOneTerm(),
				noRenewal).Run(ctx, leader.Callbacks{
				OnStartedLeading: func(ctx context.Context, lease quorate.Lease) { use(t, ctx, lease) },
			}), quorate.ErrLost)
		},
	} {
		t.Run(name, hold)
	}
}
