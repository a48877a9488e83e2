package rwmutex_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/rwmutex"
)

// comesIn has a reader lock alongside others, and reports after how long it
// had.
func comesIn(t *testing.T, m *rwmutex.RWMutex) time.Duration {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	require.NoError(t, m.RLockContext(ctx))
	m.RUnlock()
	return time.Since(began)
}

// Readers that a writer was ahead of come in when it has given up, wherever it
// waited, also while a reader goes on to hold.
func TestReadersComeInAfterAWriterThatGaveUp(t *testing.T) {
	for name, writer := range map[string]func(m, other *rwmutex.RWMutex) *rwmutex.RWMutex{
		"of the value":       func(m, _ *rwmutex.RWMutex) *rwmutex.RWMutex { return m },
		"of another process": func(_, other *rwmutex.RWMutex) *rwmutex.RWMutex { return other },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := quoratetest.New(t, 3)
				m, other := rwmutex.New(c.Quorum(), "x"), rwmutex.New(c.Quorum(), "x")
				m.RLock()
				defer m.RUnlock()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				go func() { _ = writer(m, other).LockContext(ctx) }()
				time.Sleep(time.Second / 2)
				assert.Less(t, comesIn(t, m), 10*time.Second)
			})
		})
	}
}

// A try of a writer elsewhere, which has failed, keeps no reader out for long.
func TestReadersComeInAfterATryOfAWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		m, other := rwmutex.New(c.Quorum(), "x"), rwmutex.New(c.Quorum(), "x")
		m.RLock()
		defer m.RUnlock()
		time.Sleep(time.Second)
		require.False(t, other.TryLock())
		time.Sleep(100 * time.Millisecond)
		assert.Less(t, comesIn(t, m), 10*time.Second)
	})
}

// A node that has said that a writer waits does not answer any more. The others
// say that none does.
func TestReadersComeInAsANodeIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 5)
		q := c.Quorum()
		m, other := rwmutex.New(q, "x"), rwmutex.New(c.Quorum(), "x")
		m.RLock()
		defer m.RUnlock()
		time.Sleep(time.Second)
		require.False(t, other.TryLock())
		c.Partition(q, 4)
		time.Sleep(100 * time.Millisecond)
		assert.Less(t, comesIn(t, m), time.Minute)
	})
}

// A reader of another process that waited for the writer does not wait for a
// reader.
func TestReadersComeInAfterDowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		for i := range 3 {
			c.Delay(i, time.Millisecond) // within which the next reader comes
		}
		m, other := rwmutex.New(c.Quorum(), "x"), rwmutex.New(c.Quorum(), "x")
		m.Lock()
		got := make(chan bool)
		go func() { other.RLock(); got <- true }()
		time.Sleep(time.Second)
		require.NoError(t, m.Downgrade(t.Context()))
		defer m.RUnlock()
		assert.Less(t, comesIn(t, m), 10*time.Second)
		<-got
		other.RUnlock()
	})
}

// Without renewal readers of a value share what is left of their claim.
func TestReadersShareWithoutRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := rwmutex.New(quoratetest.New(t, 3).Quorum(), "x", quorate.WithoutRenewal())
		m.RLock()
		defer m.RUnlock()
		require.NoError(t, m.TryRLockContext(t.Context()))
		m.RUnlock()
	})
}

// A reader does not share a claim that WithMaxHold has stopped the renewal of:
// it would soon lose it.
func TestReaderAfterMaxHoldOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := rwmutex.New(quoratetest.New(t, 3).Quorum(), "x", quorate.WithMaxHold(time.Minute))
		m.RLock()
		time.Sleep(time.Minute + 5*time.Second)
		require.ErrorIs(t, m.TryRLockContext(t.Context()), quorate.ErrHeld)
		m.RUnlock()
		assert.Zero(t, comesIn(t, m))
	})
}
