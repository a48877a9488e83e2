package mutex_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

// hour is a context of a bubble: a call that waits for longer is stuck.
func hour(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// minute is one that ends before much is renewed.
func minute(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// warm has tries begin at once: the first one of a process waits for
// connections.
func warm(t *testing.T, qs ...*quorate.Quorum) {
	for _, q := range qs {
		g := mutex.All(q, []string{"warm"})
		require.NoError(t, g.LockContext(hour(t)))
		g.Unlock()
	}
}

// Many free names take one round trip, and each has a token of its own.
func TestAllTakesOneRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 40 * time.Millisecond
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		warm(t, q)
		for i := range 3 {
			c.Delay(i, trip)
		}
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprint("name ", i))
		}
		g := mutex.All(q, names)
		began := time.Now()
		require.NoError(t, g.LockContext(hour(t)))
		assert.Equal(t, trip, time.Since(began))
		for _, name := range names {
			held := c.Holders(name)
			require.Len(t, held, 1)
			assert.Equal(t, held[0].Token, g.Lease(name).Token())
			assert.NoError(t, g.Lease(name).Context().Err())
		}
		assert.Nil(t, g.Lease("another"))
		g.Unlock()
		assert.Nil(t, g.Lease(names[0]))
		time.Sleep(2 * trip)
		for _, name := range names {
			assert.Empty(t, c.Holders(name))
		}
	})
}

// More names than may be on their way to first answers, in two Groups of one
// process and one of another, are locked in a few round trips, and block no
// place for others.
func TestAllOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 40 * time.Millisecond
		c := quoratetest.New(t, 3)
		q, another := c.Quorum(), c.Quorum()
		warm(t, q, another)
		for i := range 3 {
			c.Delay(i, trip)
		}
		var names []string
		for i := range 2*core.MaxStarting + 100 {
			names = append(names, fmt.Sprint("name ", i))
		}
		g := mutex.All(q, names)
		began := time.Now()
		require.NoError(t, g.LockContext(hour(t)))
		t.Log(len(names), "names took", time.Since(began))
		assert.LessOrEqual(t, time.Since(began), 4*trip)
		assert.Len(t, c.Holders(names[len(names)-1]), 1)
		g.Unlock()
		time.Sleep(2 * trip)

		var all sync.WaitGroup
		var inside atomic.Int32
		for i, q := range []*quorate.Quorum{q, q, another} {
			// Two thirds of the names each, so that any two overlap.
			mine := slices.Concat(names[i*len(names)/3:], names[:i*len(names)/3])[:2*len(names)/3]
			all.Go(func() {
				assert.NoError(t, mutex.All(q, mine).Do(hour(t), func(context.Context) error {
					assert.Equal(t, int32(1), inside.Add(1))
					time.Sleep(time.Second)
					inside.Add(-1)
					return nil
				}))
			})
		}
		all.Wait()
		time.Sleep(time.Second) // the requests wait for room; no lease ends
		left := slices.DeleteFunc(names, func(name string) bool { return len(c.Holders(name)) == 0 })
		assert.Empty(t, left)
		require.NoError(t, mutex.New(q, "afterwards").TryLockContext(hour(t)))
	})
}

// The nodes are away, and the error comes within the time of one try, however
// many names there are.
func TestAllWithoutNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		c.Stop(0)
		c.Stop(1)
		var names []string
		for i := range 100 {
			names = append(names, fmt.Sprint("name ", i))
		}
		g := mutex.All(q, names)
		began := time.Now()
		err := g.TryLockContext(hour(t))
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		assert.NotContains(t, err.Error(), "\n")
		assert.Less(t, time.Since(began), 20*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, g.LockContext(ctx), quorate.ErrNoQuorum)
		c.Start(0)
		require.NoError(t, g.LockContext(hour(t)))
		g.Unlock()
	})
}

// Goroutines that share a value wait for each other.
func TestAllIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := mutex.All(quoratetest.New(t, 3).Quorum(), []string{"a", "b"})
		count := 0
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				assert.NoError(t, g.LockContext(hour(t)))
				count++
				g.Unlock()
			})
		}
		all.Wait()
		assert.Equal(t, 10, count)
		require.NoError(t, g.LockContext(hour(t)))
		require.ErrorIs(t, g.TryLockContext(hour(t)), quorate.ErrHeld)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, g.LockContext(ctx), quorate.ErrHeld)
		g.Unlock()
	})
}

// The context of Do ends with the holds, and what is lost is said.
func TestAllIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		g, n := mutex.All(q, []string{"a", "b"}), mutex.New(c.Quorum(), "b")
		type key struct{}
		err := g.Do(context.WithValue(t.Context(), key{}, 7), func(ctx context.Context) error {
			assert.Equal(t, 7, ctx.Value(key{}))
			inner, cancel := context.WithCancel(ctx)
			defer cancel()
			c.Partition(q, 0, 1, 2)
			assert.NoError(t, n.LockContext(hour(t)))
			assert.Error(t, ctx.Err())
			assert.Error(t, inner.Err())
			assert.ErrorIs(t, context.Cause(ctx), quorate.ErrLost)
			<-ctx.Done()
			return nil
		})
		require.ErrorIs(t, err, quorate.ErrLost)
		n.Unlock()
	})
}

// What bounds a hold begins when all names are held, however long one of them
// was waited for. So each name is held for as long as it says, and not longer.
func TestAllIsBoundOnceItIsHeld(t *testing.T) {
	const ttl, most = 8 * time.Second, 10 * time.Second
	for what, c := range map[string]struct {
		opt         quorate.Option
		least, most time.Duration
	}{
		"WithMaxHold":    {quorate.WithMaxHold(most), most, most + ttl},
		"WithoutRenewal": {quorate.WithoutRenewal(), ttl - ttl/16, ttl},
	} {
		for _, wait := range []time.Duration{0, most + 2*time.Second} {
			t.Run(fmt.Sprint(what, " after ", wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					nodes := quoratetest.New(t, 3)
					other := mutex.New(nodes.Quorum(), "b")
					g := mutex.All(nodes.Quorum(quorate.WithTTL(ttl), c.opt), []string{"a", "b", "c"})
					if wait > 0 {
						require.NoError(t, other.LockContext(hour(t)))
						time.AfterFunc(wait, other.Unlock)
					}
					require.NoError(t, g.LockContext(hour(t)))
					began := time.Now()
					for _, name := range []string{"a", "b", "c"} {
						l := g.Lease(name)
						context.AfterFunc(l.Context(), func() {
							held := time.Since(began)
							assert.ErrorIs(t, context.Cause(l.Context()), quorate.ErrLost, name)
							assert.GreaterOrEqual(t, held, c.least, name)
							assert.LessOrEqual(t, held, c.most, name)
						})
					}
					time.Sleep(time.Minute)
					for _, name := range []string{"a", "b", "c"} {
						assert.Error(t, g.Lease(name).Context().Err(), name)
					}
					g.Unlock()
				})
			})
		}
	}
}

func TestAllMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quoratetest.New(t, 1).Quorum()
		err := mutex.All(q, nil).LockContext(t.Context())
		require.ErrorIs(t, err, quorate.ErrInvalid)
		require.ErrorContains(t, err, "pass at least one name to mutex.All")
		err = mutex.All(q, []string{"a", "{b}"}).TryLockContext(t.Context())
		require.ErrorIs(t, err, quorate.ErrInvalid)
		require.ErrorContains(t, err, `"{b}"`)
		assert.PanicsWithValue(t, "quorate: unlock of unlocked mutex.Group", mutex.All(q, []string{"a"}).Unlock)
		assert.PanicsWithValue(t, "quorate: the zero mutex.Group has no names; use mutex.All or mutex.Both",
			func() { _ = new(mutex.Group).LockContext(t.Context()) })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, mutex.All(q, []string{"a"}).LockContext(ctx), context.Canceled)
		require.NoError(t, q.Close())
		require.ErrorIs(t, mutex.All(q, []string{"a"}).LockContext(t.Context()), quorate.ErrClosed)
	})
}
