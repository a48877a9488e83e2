package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/semaphore"
)

// A try for more permits than NewWeighted says asks the nodes whether a Resize
// has made more. It does not wait for nodes that are down, as no try does.
func TestTryDoesNotWaitForTheNumber(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	s := semaphore.NewWeighted(e2e.Open(t, c), "s", 2)
	require.NoError(t, s.Acquire(patient(t), 1)) // the nodes work
	s.Release(1)
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Stop())
	}
	tried := make(chan bool, 1)
	go func() { tried <- s.TryAcquire(3) }()
	select {
	case ok := <-tried:
		assert.False(t, ok)
	case <-time.After(e2e.Patience):
		assert.Fail(t, "TryAcquire waits for the nodes")
	}
	_, err := s.TryAcquireLease(patient(t), 3)
	assert.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context has not ended")
}
