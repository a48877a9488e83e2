package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

func TestMain(m *testing.M) {
	e2e.Parallel(6)
	e2e.MainWithNodes(m)
}

// quiet is a ttl so long that nothing is renewed and nothing ends while a test
// lasts.
const quiet = time.Minute

// cluster starts three servers, and sees in the end that nothing is left on
// them.
func cluster(t *testing.T) *redistest.Cluster {
	t.Helper()
	c := redistest.Start(t, 3)
	t.Cleanup(func() { e2e.Clean(t, c) })
	return c
}

// nodes starts three nodes in the test's bubble, and sees in the end that they
// hold nothing.
func nodes(t *testing.T) *quoratetest.Cluster {
	t.Helper()
	c := quoratetest.New(t, 3)
	t.Cleanup(func() { assert.Empty(t, c.Holders("m"), "when all Quorums are closed") })
	return c
}

// delay has all nodes answer so late.
func delay(c *quoratetest.Cluster, d time.Duration) {
	for i := range 3 {
		c.Delay(i, d)
	}
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
	e2e.Receive(t, queued.In())
	return done
}
