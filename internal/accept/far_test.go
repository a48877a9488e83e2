package accept_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/redistest"
	"github.com/quorate/quorate/mutex"
)

// However far the nodes are, a client connects, and a free name is had by a try: here
// a round trip takes longer than the node timeout, and five of them longer than a
// node may be silent.
func TestFarNodes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	near, err := quorate.Connect(t.Context(), c.URLs())
	require.NoError(t, err)
	require.NoError(t, near.Bootstrap(t.Context()))
	require.NoError(t, near.Close())
	for _, far := range []int{3, 2} {
		t.Run(fmt.Sprint(far, " of 3"), func(t *testing.T) {
			t.Parallel()
			_, urls := proxies(t, c, 250*time.Millisecond)
			copy(urls, c.URLs()[:3-far])
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			q, err := quorate.Connect(ctx, urls)
			require.NoError(t, err)
			defer func() { assert.NoError(t, q.Close()) }()
			m := mutex.New(q, fmt.Sprint("far", far))
			assert.NoError(t, m.TryLockContext(ctx))
			h, err := m.Holder(ctx)
			assert.NoError(t, err)
			assert.Equal(t, m.Lease().Token(), h.Token)
			assert.NoError(t, m.UnlockContext(ctx))
			assert.NoError(t, m.LockContext(ctx))
			assert.NoError(t, m.UnlockContext(ctx))
		})
	}
}
