package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/memory"
	"github.com/quorate/quorate/mutex"
)

// In a bubble of testing/synctest all that a Quorum waits for is of the bubble:
// its time is fake, and nothing of one bubble is used in the next one.
func TestQuorumInABubble(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			nodes := memory.NewNodes(3)
			a, b := open(t, nodes), open(t, nodes)
			m, n := mutex.New(a, "m"), mutex.New(b, "m")
			require.NoError(t, m.LockContext(soon(t)))
			start := time.Now()
			released := make(chan error)
			time.AfterFunc(30*time.Second, func() { released <- m.UnlockContext(soon(t)) })
			require.NoError(t, n.LockContext(soon(t)))
			assert.Equal(t, 30*time.Second, time.Since(start))
			require.NoError(t, <-released)
			require.NoError(t, n.Extend(soon(t)))
			require.NoError(t, n.UnlockContext(soon(t)))
		})
	}
}
