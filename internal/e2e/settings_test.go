package e2e_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// Clients with different settings exclude each other all the same: the one with
// the short ttl and retention drops no lease of the other, and Check names the
// difference.
func TestSettingsThatDiffer(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	long := e2e.Open(t, c, quorate.WithTTL(10*time.Minute), quorate.WithGuard(21*time.Minute),
		quorate.WithRetention(time.Hour))
	connect := func() *quorate.Quorum {
		q, err := quorate.Connect(deadline(t), c.URLs(), quorate.WithLogger(nil))
		require.NoError(t, err)
		t.Cleanup(func() { _ = q.Close() })
		return q
	}
	short := connect()
	m := mutex.New(long, "m")
	require.NoError(t, m.LockContext(t.Context()))
	other := mutex.New(short, "m")
	// held tries until a majority has answered: a busy machine may be too slow
	// for the first try.
	held := func(m *mutex.Mutex) {
		var err error
		e2e.Eventually(func() bool {
			err = m.TryLockContext(t.Context())
			return !errors.Is(err, quorate.ErrNoQuorum)
		})
		require.ErrorIs(t, err, quorate.ErrHeld)
	}
	for range 3 {
		held(other)
	}
	done := make(chan error, 1)
	go func() { done <- other.LockContext(deadline(t)) }()
	require.True(t, e2e.Eventually(func() bool {
		h, err := m.Holder(t.Context())
		return err == nil && h.Waiters == 1
	}))
	held(mutex.New(connect(), "m"))
	require.NoError(t, m.Lease().Context().Err())
	m.Unlock()
	err := e2e.Receive(t, done)
	require.NoError(t, err)
	other.Unlock()

	r, err := short.Check(t.Context())
	require.NoError(t, err)
	for _, n := range r.Nodes {
		assert.Empty(t, n.Warnings, "the set has the settings, whatever a client was given")
	}
	r, err = long.Check(t.Context())
	require.NoError(t, err)
	assert.Empty(t, r.Nodes[0].Warnings)
	e2e.Clean(t, c)
}
