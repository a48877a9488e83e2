package semaphore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/semaphore"
)

// overlapping returns three participants of a semaphore of two permits on
// three servers, of which each cannot reach another one: any two of the three
// meet on just one server, and each server hears of just two of them.
func overlapping(t *testing.T) (s [3]*semaphore.Weighted) {
	t.Helper()
	c := redistest.Start(t, 3)
	nowhere := redistest.Start(t, 1)
	e2e.Open(t, c) // declares them ready
	require.NoError(t, nowhere.Node(0).Kill())
	for i := range s {
		urls := c.URLs()
		urls[i] = nowhere.URLs()[0]
		s[i] = semaphore.NewWeighted(e2e.OpenAt(t, urls), "s", 2)
	}
	return s
}

// TestCounting is the counter-example to counting votes: two of three servers
// have room for each of the three.
func TestCounting(t *testing.T) {
	t.Parallel()
	s := overlapping(t)
	require.NoError(t, s[0].Acquire(t.Context(), 1))
	require.NoError(t, s[1].Acquire(t.Context(), 1))
	require.False(t, s[2].TryAcquire(1), "a third holder of two permits")
	s[0].Release(1)
	require.NoError(t, s[2].Acquire(t.Context(), 1), "and it is not refused forever")
	s[1].Release(1)
	s[2].Release(1)
}
