package semaphore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/semaphore"
)

// TestWeightsInOrder queues claims of one to five permits, each by another of
// several processes than the one before, while others are being served. The
// first claim of the queue is admitted as soon as it fits, and no claim is
// admitted before it.
func TestWeightsInOrder(t *testing.T) {
	t.Parallel()
	const permits, length = 5, 8 // of the queue
	weights := []int64{2, 5, 1, 3, 1, 4, 2, 2, 5, 1, 1, 1, 3, 2, 4, 3, 1, 5, 4, 1, 2, 3, 1, 1, 5, 1}
	for _, nodes := range []int{3, 5} {
		t.Run(fmt.Sprintf("on %d servers", nodes), func(t *testing.T) {
			c := redistest.Start(t, nodes)
			var s []*semaphore.Weighted
			for range 4 {
				s = append(s, semaphore.NewWeighted(e2e.Open(t, c), "s", permits))
			}
			first, err := s[0].AcquireLease(t.Context(), permits)
			require.NoError(t, err)
			inside := []entry{{lease: first, weight: permits}}
			used, token, room := int64(permits), first.Token(), time.Now()
			var in []chan entry
			for i, weight := range weights {
				for k := len(in); k < min(i+length, len(weights)); k++ {
					in = append(in, enqueue(t, s[k%len(s)], weights[k]))
					queued(t, c, len(inside)+k-i+1)
				}
				for used+weight > permits { // the oldest holders leave
					room = time.Now()
					require.NoError(t, inside[0].lease.Release())
					used -= inside[0].weight
					inside = inside[1:]
				}
				var e entry
				select {
				case e = <-in[i]:
				case <-time.After(e2e.Patience):
					require.FailNow(t, "there is room", "and claim %d of weight %d does not get in", i, weight)
				}
				require.NoError(t, e.err)
				require.False(t, e.at.Before(room), "claim %d of weight %d got in before its turn", i, weight)
				require.Greater(t, e.lease.Token(), token)
				used, token = used+weight, e.lease.Token()
				inside = append(inside, e)
			}
			for _, e := range inside {
				require.NoError(t, e.lease.Release())
			}
			e2e.Clean(t, c)
		})
	}
}

// entry is how a claim got in.
type entry struct {
	lease  *semaphore.Lease
	weight int64
	at     time.Time
	err    error
}

// enqueue has a claim join the queue.
func enqueue(t *testing.T, s *semaphore.Weighted, weight int64) chan entry {
	in := make(chan entry, 1)
	go func() {
		l, err := s.AcquireLease(t.Context(), weight)
		in <- entry{l, weight, time.Now(), err}
	}()
	return in
}

// queued waits until every server has so many claims, at least two.
func queued(t *testing.T, c *redistest.Cluster, claims int) {
	t.Helper()
	key := script.NewKeys("quorate", "s").Claims()
	for i := range c.Len() {
		require.True(t, e2e.Eventually(func() bool {
			n, err := c.Node(i).Client().HLen(t.Context(), key).Result()
			return err == nil && n == int64(claims)
		}), "server %d has all %d claims", i, claims)
	}
}
