package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

func TestMain(m *testing.M) { e2e.MainWithNodes(m) }

// quiet is a ttl so long that nothing is renewed and nothing ends while a test lasts.
const quiet = time.Minute

// cluster starts three servers, and sees in the end that nothing is left on them.
func cluster(t *testing.T) *redistest.Cluster {
	t.Helper()
	c := redistest.Start(t, 3)
	t.Cleanup(func() { e2e.Clean(t, c) })
	return c
}

// commands is how many scripts the servers have run, all of them together.
func commands(t *testing.T, c *redistest.Cluster) int { return c.Calls(t, "evalsha") }

// waiters waits until so many others are queued behind the holder of m.
func waiters(t *testing.T, m *mutex.Mutex, n int) {
	t.Helper()
	var h quorate.Holder
	var err error
	require.True(t, e2e.Eventually(func() bool {
		h, err = m.Holder(t.Context())
		return err == nil && h.Waiters == n
	}), "%+v, %v", h, err)
}

// within waits for what must happen, and not too late to be it.
func within[T any](t *testing.T, d time.Duration, c <-chan T) T {
	t.Helper()
	var v T
	select {
	case v = <-c:
	case <-time.After(d):
		require.FailNow(t, "has not happened", "within %v", d)
	}
	return v
}

// lockLater calls LockContext in a goroutine and returns when that waits, or
// has not had to.
func lockLater(ctx context.Context, t *testing.T, m *mutex.Mutex) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	queued := e2e.NewQueued(ctx)
	go func() {
		done <- m.LockContext(queued)
		queued.Done()
	}()
	within(t, e2e.Patience, queued.In())
	return done
}
