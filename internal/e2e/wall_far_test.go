package e2e_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// A client whose nodes are farther away than a node timeout learns that its
// wall clock is wrong, and that it is right again.
func TestWrongWallClockFarNodes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	healthy := e2e.Open(t, c, e2e.Timing(2*time.Second))
	_, urls := e2e.Proxies(t, c.URLs(), proxy.Fault{Delay: 300 * time.Millisecond})
	var off atomic.Int64
	off.Store(int64(year))
	far, err := quorate.Connect(t.Context(), urls, e2e.Through(), e2e.Timing(2*time.Second), wallOf(&off))
	require.NoError(t, err)
	defer func() { _ = far.Close() }() // it does not wait for what far nodes confirm
	m := mutex.New(far, "m")
	err = m.LockContext(deadline(t))
	require.ErrorIs(t, err, quorate.ErrClock)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	off.Store(0)
	require.True(t, e2e.Eventually(func() bool { return m.LockContext(deadline(t)) == nil }), "the clock is right again")
	m.Unlock()
	other := mutex.New(healthy, "m")
	require.NoError(t, other.LockContext(deadline(t)))
	other.Unlock()
}
