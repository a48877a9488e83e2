package semaphore_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/semaphore"
)

// overlapping returns three participants of a semaphore of two permits on
// three nodes, of which each cannot reach another one: any two of the three
// meet on just one node, and each node hears of just two of them.
func overlapping(t *testing.T) (s [3]*semaphore.Weighted) {
	t.Helper()
	c := quoratetest.New(t, 3)
	for i := range s {
		q := c.Quorum()
		c.Partition(q, i)
		s[i] = semaphore.NewWeighted(q, "s", 2)
	}
	return s
}

// TestCounting is the counter-example to counting votes: two of three nodes
// have room for each of the three.
func TestCounting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := overlapping(t)
		require.NoError(t, s[0].Acquire(t.Context(), 1))
		require.NoError(t, s[1].Acquire(t.Context(), 1))
		require.False(t, s[2].TryAcquire(1), "a third holder of two permits")
		s[0].Release(1)
		require.NoError(t, s[2].Acquire(t.Context(), 1), "and it is not refused forever")
		s[1].Release(1)
		s[2].Release(1)
	})
}
