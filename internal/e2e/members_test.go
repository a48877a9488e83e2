package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// contend has programs with the given Quorums lock many names for a while. It
// returns the number of holds, of those that overlapped, and the last error of
// each program.
func contend(t *testing.T, d time.Duration, programs ...*quorate.Quorum) (holds, overlaps int64, errs []error) {
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

var listsFor = flag.Duration("lists", 2500*time.Millisecond, "how long the programs of TestTwoLists lock")

// otherLists are lists, by the numbers of their servers, beside that of the
// first three.
var otherLists = map[string][]int{"ABD": {0, 1, 3}, "ABCDE": {0, 1, 2, 3, 4}}

// twoLists returns two programs with different lists, and the URLs of the
// second list. All servers vote. If the set is recorded, it is that of the
// first program.
func twoLists(t *testing.T, c *redistest.Cluster, list []int, recorded bool, timing quorate.Option) (first, second *quorate.Quorum, other []string) {
	t.Helper()
	urls := c.URLs()
	for _, u := range urls[3:] {
		require.NoError(t, e2e.DeclareUnrecorded([]string{u}))
	}
	first = e2e.OpenAt(t, urls[:3], timing)
	if recorded {
		require.NoError(t, first.Bootstrap(deadline(t)))
	} else {
		require.NoError(t, e2e.DeclareUnrecorded(urls[:3]))
	}
	for _, i := range list {
		other = append(other, urls[i])
	}
	return first, e2e.OpenAt(t, other, timing), other
}

// Two programs whose lists of nodes differ never hold one name at the same
// time, once the nodes were declared new. The one whose list is not that of the
// set gets an error that names both lists, and holds nothing.
func TestTwoLists(t *testing.T) {
	t.Parallel()
	for name, list := range otherLists {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := redistest.Start(t, 5)
			timing := e2e.Guarded(400*time.Millisecond, time.Minute) // the nodes are in use by none before Bootstrap, however busy the machine is
			first, second, other := twoLists(t, c, list, true, timing)
			holds, overlaps, errs := contend(t, *listsFor, first, second)
			t.Logf("%d holds in %v, %d overlaps, the errors %v", holds, *listsFor, overlaps, errs)
			assert.Positive(t, holds)
			assert.Zero(t, overlaps, "two programs held one name at the same time, %d holds", holds)
			require.NoError(t, errs[0])
			require.ErrorIs(t, errs[1], quorate.ErrInvalid)
			assert.ErrorContains(t, errs[1], c.Node(3).Addr(), "the list of the program")
			assert.ErrorContains(t, errs[1], c.Node(2).Addr()+" since ", "the set")
			require.True(t, e2e.Eventually(func() bool { // Connect does not wait for a node that a busy machine has no time for
				q, err := quorate.Connect(deadline(t), other, quorate.WithLogger(nil), timing)
				if err == nil {
					_ = q.Close()
				}
				return errors.Is(err, quorate.ErrInvalid)
			}))
			require.ErrorIs(t, second.Bootstrap(deadline(t)), quorate.ErrInvalid)
			require.ErrorIs(t, second.RecordSet(deadline(t)), quorate.ErrInvalid)
			assert.False(t, errors.Is(first.Bootstrap(deadline(t)), quorate.ErrInvalid), "the set's own list may be declared again")
		})
	}
}

// Where the set is not recorded, the programs of TestTwoLists hold one name at
// the same time. So that test can fail.
func TestTwoListsWithoutASet(t *testing.T) {
	t.Parallel()
	for name, list := range otherLists {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second, _ := twoLists(t, redistest.Start(t, 5), list, false, e2e.Timing(400*time.Millisecond))
			require.True(t, e2e.Eventually(func() bool {
				holds, overlaps, errs := contend(t, *listsFor, first, second)
				t.Logf("%d holds in %v, %d overlaps, the errors %v", holds, *listsFor, overlaps, errs)
				return overlaps > 0
			}))
		})
	}
}

// Connect refuses a wrong list though the odd node is further away than the
// node timeout. The two others are the set's and answer at once.
func TestConnectAsksTheOddNode(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	timing := e2e.Timing(4 * time.Second) // a node timeout of a second
	require.NoError(t, core.CoreOf(e2e.OpenAt(t, c.URLs()[:3], timing)).BootstrapSet(deadline(t)))
	_, odd := proxy.Start(t, c.URLs()[3:], proxy.Fault{Delay: 1500 * time.Millisecond})
	q, err := quorate.Connect(deadline(t), append(c.URLs()[:2:2], odd...), quorate.WithLogger(nil), timing)
	if err == nil {
		_ = q.Close()
	}
	require.ErrorIs(t, err, quorate.ErrInvalid)
	assert.ErrorContains(t, err, odd[0][len("redis://"):]+" is not one of them")
}

// The set is recorded while clients hold and wait that were connected before:
// holders keep their holds, and waiters their places.
func TestSetIsRecordedInUse(t *testing.T) {
	t.Parallel()
	const ttl = 4 * time.Second // a machine may stand still for a second
	c := redistest.Start(t, 3)
	holder, waiter := mutex.New(e2e.OpenAt(t, c.URLs(), e2e.Timing(ttl)), "m"), mutex.New(e2e.OpenAt(t, c.URLs(), e2e.Timing(ttl)), "m")
	require.NoError(t, holder.LockContext(deadline(t)))
	ctx := holder.Lease().Context()
	turn := make(chan error, 1)
	go func() { turn <- waiter.LockContext(deadline(t)) }()
	require.True(t, e2e.Eventually(func() bool {
		h, err := holder.Holder(t.Context())
		return err == nil && h.Waiters == 1
	}))
	require.NoError(t, core.CoreOf(e2e.OpenAt(t, c.URLs(), e2e.Timing(ttl))).BootstrapSet(deadline(t)))
	for i := range 3 {
		assert.Contains(t, e2e.MarkerKey(t.Context(), c.Node(i)), ":{}:1.")
	}
	time.Sleep(ttl + ttl/4) // longer than any lease of before
	require.NoError(t, ctx.Err(), "the hold outlasts the change")
	holder.Unlock()
	require.NoError(t, e2e.Receive(t, turn))
	waiter.Unlock()
	e2e.Clean(t, c)
}

// A ttl that the guard time of the set does not cover is refused, of a Quorum
// and of a lock.
func TestTTLBeyondTheSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(400*time.Millisecond))
	require.NoError(t, core.CoreOf(q).BootstrapSet(deadline(t)))
	long, err := quorate.Connect(deadline(t), c.URLs(), quorate.WithLogger(nil), e2e.Timing(10*time.Minute))
	require.ErrorIs(t, err, quorate.ErrInvalid)
	require.Nil(t, long)
	assert.ErrorContains(t, err, "WithTTL(10m0s)")
	assert.ErrorContains(t, err, "guard time of 820ms")

	lazy := mutex.New(e2e.OpenAt(t, c.URLs(), e2e.Timing(10*time.Minute)), "m")
	require.True(t, e2e.Eventually(func() bool { return errors.Is(lazy.TryLockContext(t.Context()), quorate.ErrInvalid) }))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
}

// A server with a copy of a node's data is refused. The error names both.
func TestCopyOfANode(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	urls := c.URLs()
	first := e2e.OpenAt(t, urls[:3], e2e.Timing(400*time.Millisecond))
	require.NoError(t, core.CoreOf(first).BootstrapSet(deadline(t)))
	from, to := c.Node(0).Client(), c.Node(3).Client()
	for _, key := range from.Keys(t.Context(), "*").Val() {
		require.NoError(t, to.Restore(t.Context(), key, 0, from.Dump(t.Context(), key).Val()).Err())
	}
	q := e2e.OpenAt(t, []string{urls[0], urls[1], urls[3]}, e2e.Timing(400*time.Millisecond))
	require.True(t, e2e.Eventually(func() bool {
		r, _ := q.Check(t.Context())
		return r.Ready == 2 && r.Nodes[2].Err != nil && strings.Contains(r.Nodes[2].Err.Error(), "has a copy of the data of "+c.Node(0).Addr())
	}))
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
			require.NoError(t, core.CoreOf(q).BootstrapSet(deadline(t)))
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
			ready()
			m := mutex.New(q, "m")
			require.NoError(t, m.LockContext(deadline(t)))
			m.Unlock()
			for i := 0; i < 3 && (how.turns || how.nodes < 3); i++ {
				assert.Equal(t, home, e2e.MarkerKey(t.Context(), c.Node(i)))
			}
		})
	}
}
