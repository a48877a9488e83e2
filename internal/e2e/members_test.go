package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
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

// contend has programs with the given Quorums lock many names for a while. It
// returns the number of holds, of those that overlapped, and the last error of
// each program.
func contend(t *testing.T, d time.Duration,
	programs ...*quorate.Quorum) (holds, overlaps int64, errs []error) {
	t.Helper()
	const names = 16
	var inside [names]atomic.Int32
	var held, both atomic.Int64
	errs = make([]error, len(programs))
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	for p, q := range programs {
		for n := range names {
			all.Go(func() {
				m := mutex.New(q, fmt.Sprint("name ", n))
				for ctx.Err() == nil {
					if err := m.LockContext(ctx); err != nil {
						if ctx.Err() == nil {
							mu.Lock()
							errs[p] = err
							mu.Unlock()
							time.Sleep(time.Millisecond)
						}
						continue
					}
					if inside[n].Add(1) > 1 {
						both.Add(1)
					}
					held.Add(1)
					time.Sleep(time.Millisecond)
					inside[n].Add(-1)
					m.Unlock()
				}
			})
		}
	}
	all.Wait()
	return held.Load(), both.Load(), errs
}

var listsFor = flag.Duration("lists", 2500*time.Millisecond, "how long the programs of TestLists lock")

// Programs whose lists of nodes differ never hold one name at the same time. A
// list of which a majority shows the set leads to it, whatever else it names.
// With any other list nothing is held.
func TestLists(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	list := func(nodes ...int) (urls []string) {
		for _, i := range nodes {
			urls = append(urls, c.Node(i).URL())
		}
		return urls
	}
	timing := e2e.Guarded(400*time.Millisecond, time.Minute)
	first := e2e.OpenAt(t, list(0, 1, 2), timing)
	recorded(t, first)
	holds, overlaps, errs := contend(t, *listsFor, first,
		e2e.OpenAt(t, list(0, 1, 3), timing), e2e.OpenAt(t, list(4, 3, 2, 1, 0), timing),
		e2e.OpenAt(t, list(0, 3, 4), timing))
	t.Logf("%d holds in %v, the errors %v", holds, *listsFor, errs)
	assert.Positive(t, holds)
	assert.Zero(t, overlaps, "two programs held one name at the same time")
	for _, err := range errs[:3] {
		require.NoError(t, err)
	}
	require.ErrorIs(t, errs[3], quorate.ErrInvalid)
	assert.ErrorContains(t, errs[3], "give every client the set's list")
	for _, i := range []int{3, 4} {
		assert.Zero(t, c.Node(i).Client().Exists(t.Context(), e2e.MarkerKey(t.Context(), c.Node(0))).Val(),
			"a server of no set has no vote")
	}

	require.NoError(t, e2e.Declare(list(3)))
	_, err := quorate.Connect(deadline(t), list(0, 3), quorate.WithLogger(nil), timing)
	require.ErrorIs(t, err, quorate.ErrInvalid, "two sets")
	assert.ErrorContains(t, err, "this client's list, "+c.Node(0).Addr()+" "+c.Node(3).Addr())
}

// A ttl that the guard time of the set does not cover is refused, of a Quorum
// and of a lock.
func TestTTLBeyondTheSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(400*time.Millisecond))
	long, err := quorate.Connect(deadline(t), c.URLs(), quorate.WithLogger(nil), e2e.Timing(10*time.Minute))
	require.ErrorIs(t, err, quorate.ErrInvalid)
	require.Nil(t, long)
	assert.ErrorContains(t, err, "WithTTL(10m0s)")
	assert.ErrorContains(t, err, "guard time is 820ms")

	lazy := mutex.New(e2e.OpenAt(t, c.URLs(), e2e.Timing(10*time.Minute)), "m")
	require.True(t,
		e2e.Eventually(func() bool { return errors.Is(lazy.TryLockContext(t.Context()), quorate.ErrInvalid) }))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
}

// A node that lost its data gets its place back from the clients that are
// connected, or from the next one that comes. A client with another list does
// not.
func TestNodeGetsItsPlaceBack(t *testing.T) {
	t.Parallel()
	for name, connected := range map[string]bool{"connected": true, "comes then": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := redistest.Start(t, 3)
			timing := e2e.Timing(400 * time.Millisecond)
			q := e2e.Open(t, c, timing)
			if !connected {
				require.NoError(t, q.Close())
			}
			require.NoError(t, c.Node(2).Restart()) // in memory only
			if !connected {
				q = e2e.OpenAt(t, c.URLs(), timing)
			}
			require.True(t, e2e.Eventually(func() bool {
				r, err := q.Check(t.Context())
				return err == nil && r.Ready == 3
			}))
			assert.Equal(t, e2e.MarkerKey(t.Context(), c.Node(0)), e2e.MarkerKey(t.Context(), c.Node(2)))
		})
	}
}

// Nodes that keep their data in memory are restarted at one time, or one after
// the other. They come back by themselves after their guard time, to the same
// set if one node was left: with a client that was connected all the time, or
// with one that comes then.
func TestMostNodesLoseTheirData(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]struct {
		nodes            int
		connected, turns bool
	}{
		"two, connected":      {nodes: 2, connected: true},
		"two, a client comes": {nodes: 2},
		"all, connected":      {nodes: 3, connected: true},
		"all, a client comes": {nodes: 3},
		"one after the other": {nodes: 3, connected: true, turns: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := redistest.Start(t, 3)
			timing := e2e.Timing(400 * time.Millisecond)
			q := e2e.OpenAt(t, c.URLs(), timing)
			recorded(t, q)
			home := e2e.MarkerKey(t.Context(), c.Node(0))
			if !how.connected {
				require.NoError(t, q.Close())
			}
			ready := func() {
				require.True(t, e2e.Eventually(func() bool {
					r, err := q.Check(t.Context())
					return err == nil && r.Ready == 3
				}))
			}
			for i := range how.nodes {
				require.NoError(t, c.Node(2-i).Kill())
				if how.turns {
					require.NoError(t, c.Node(2-i).Restart())
					ready()
				}
			}
			for i := 0; i < how.nodes && !how.turns; i++ {
				require.NoError(t, c.Node(2-i).Restart()) // in memory only
			}
			if !how.connected {
				q = e2e.OpenAt(t, c.URLs(), timing)
			}
			m := mutex.New(q, "m")
			require.NoError(t, m.LockContext(deadline(t)))
			m.Unlock()
			ready()
			for i := 0; i < 3 && (how.turns || how.nodes < 3); i++ {
				assert.Equal(t, home, e2e.MarkerKey(t.Context(), c.Node(i)))
			}
		})
	}
}
