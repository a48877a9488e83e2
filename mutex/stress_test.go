package mutex_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// guarded is what a stress test protects with nothing but the lock.
type guarded struct {
	inside atomic.Int32  // how many believe that they hold it
	sum    atomic.Uint64 // incremented by a load and a store, which loses updates if two do it
	token  atomic.Uint64 // the highest that has held it
	wanted atomic.Uint64 // what sum must come to
}

// enter does a holder's work. It may only be called by a holder.
func (g *guarded) enter(t *testing.T, token uint64) {
	assert.EqualValues(t, 1, g.inside.Add(1), "alone")
	assert.Greater(t, token, g.token.Swap(token), "tokens rise")
	sum := g.sum.Load()
	if token%8 == 0 {
		time.Sleep(time.Duration(token % 400 * 1000))
	}
	g.sum.Store(sum + 1)
	g.wanted.Add(1)
	g.inside.Add(-1)
}

// Many goroutines on several values in several quorums, which give up at
// random.
func TestStress(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	const values, goroutines, rounds = 6, 5, 60
	var shared guarded
	var all sync.WaitGroup
	for v := range values {
		opts := []quorate.Option{e2e.Timing(quiet)}
		if v%3 == 1 {
			opts = append(opts, quorate.WithLinger(time.Millisecond))
		}
		m := mutex.New(e2e.Open(t, c, opts...), "m")
		own := 0 // with nothing but the value's own order: the race detector looks on
		var got atomic.Int64
		t.Cleanup(func() { assert.EqualValues(t, own, got.Load()) })
		for range goroutines {
			all.Go(func() {
				for range rounds {
					if !lockSomehow(t, m) {
						continue
					}
					own++
					got.Add(1)
					shared.enter(t, m.Lease().Token())
					m.Unlock()
				}
			})
		}
	}
	all.Wait()
	assert.Equal(t, shared.wanted.Load(), shared.sum.Load())
	assert.Greater(t, shared.sum.Load(), uint64(values*goroutines*rounds/4), "most got it")
	e2e.Clean(t, c)
}

// lockSomehow locks in one of the ways there are, and reports whether it did.
func lockSomehow(t *testing.T, m *mutex.Mutex) bool {
	switch rand.IntN(6) {
	case 0:
		return m.TryLock()
	case 1, 2:
		ctx, cancel := context.WithTimeout(context.Background(), rand.N(20*time.Millisecond))
		defer cancel()
		err := m.LockContext(ctx)
		if err != nil {
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}
		return err == nil
	default:
		m.Lock()
		return true
	}
}

// The same value by many goroutines: the plainest program that sync.Mutex
// serves.
func TestStressOneValue(t *testing.T) {
	t.Parallel()
	q := e2e.Open(t, cluster(t), e2e.Timing(10*time.Second))
	m := mutex.New(q, "m")
	counter := 0
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 100 {
				m.Lock()
				counter++
				m.Unlock()
			}
		})
	}
	all.Wait()
	require.Equal(t, 5000, counter)
}
