package mutex_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

// A try that fails at one name leaves nothing at the others, and says at which
// in one line.
func TestAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		other := mutex.New(c.Quorum(), "b")
		require.NoError(t, other.LockContext(hour(t)))
		g := mutex.All(q, []string{"c", "b", "a", "b"})
		err := g.TryLockContext(hour(t))
		require.ErrorIs(t, err, quorate.ErrHeld)
		assert.Equal(t, `quorate: try lock "b": `, err.Error()[:len(`quorate: try lock "b": `)])
		assert.NotContains(t, err.Error(), "\n")
		synctest.Wait()
		assert.Empty(t, c.Holders("a"))
		assert.Empty(t, c.Holders("c"))

		// It waits with what comes before in the order of the names.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		result := make(chan error)
		go func() { result <- g.LockContext(ctx) }()
		synctest.Wait()
		assert.Len(t, c.Holders("a"), 1)
		assert.Empty(t, c.Holders("c"))
		assert.Nil(t, g.Lease("a"))
		err = <-result
		require.ErrorIs(t, err, quorate.ErrHeld)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		assert.Empty(t, c.Holders("a"))

		go func() { result <- g.LockContext(hour(t)) }()
		synctest.Wait()
		other.Unlock()
		require.NoError(t, <-result)
		assert.Greater(t, g.Lease("b").Token(), uint64(0))
		g.Unlock()
	})
}

// Processes that take random names in random order, and Mutexes between them,
// get what they want, one at a time.
func TestAllWithoutDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		names := []string{"a", "b", "c", "d", "e"}
		var mu sync.Mutex
		inside := map[string]int{}
		step := func(names []string, d int) {
			mu.Lock()
			defer mu.Unlock()
			for _, name := range names {
				inside[name] += d
				assert.LessOrEqual(t, inside[name], 1, name)
			}
		}
		var all sync.WaitGroup
		for i := range 8 {
			q := c.Quorum(quorate.WithLogger(nil))
			r := rand.New(rand.NewPCG(1, uint64(i)))
			all.Go(func() {
				for range 50 {
					mine := make([]string, 0, 3)
					for _, k := range r.Perm(len(names))[:3] {
						mine = append(mine, names[k])
					}
					work := func(names []string) {
						step(names, 1)
						time.Sleep(time.Millisecond)
						step(names, -1)
					}
					if i%4 == 0 {
						m := mutex.New(q, mine[0])
						if assert.NoError(t, m.LockContext(minute(t))) {
							work(mine[:1])
							m.Unlock()
						}
						continue
					}
					assert.NoError(t, mutex.All(q, mine).Do(minute(t), func(context.Context) error {
						work(mine)
						return nil
					}))
				}
			})
		}
		all.Wait()
		synctest.Wait()
		for _, name := range names {
			assert.Empty(t, c.Holders(name))
		}
	})
}

// A queue for one name that takes longer than the time of WithMaxHold and a
// lease keeps no Group out.
func TestAllGetsThroughALongQueue(t *testing.T) {
	for what, opt := range map[string]quorate.Option{
		"WithMaxHold": quorate.WithMaxHold(time.Second), "WithoutRenewal": quorate.WithoutRenewal(),
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := quoratetest.New(t, 3)
				ctx, cancel := context.WithCancel(t.Context())
				var others sync.WaitGroup
				defer others.Wait()
				defer cancel()
				for range 15 { // each has a turn every 10.5 s
					m := mutex.New(c.Quorum(), "b")
					others.Go(func() {
						for m.LockContext(ctx) == nil {
							time.Sleep(700 * time.Millisecond)
							m.Unlock()
						}
					})
				}
				time.Sleep(time.Minute)
				g := mutex.All(c.Quorum(opt), []string{"a", "b"})
				require.NoError(t, g.LockContext(minute(t)))
				g.Unlock()
			})
		})
	}
}
