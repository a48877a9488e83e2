package mutex_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// Where many goroutines are at work, requests of many names go out as one. Some
// names here have one user, others two, in two processes; and the servers
// forget the scripts in between.
func TestManyWaiters(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	const values, names, goroutines, rounds = 2, 80, 64, 40
	shared := make([]guarded, names)
	var all sync.WaitGroup
	before := make([]int, c.Len())
	for i := range before {
		before[i] = c.Node(i).Calls(t, "evalsha")
	}
	for v := range values {
		q := e2e.Open(t, c, e2e.Timing(quiet))
		for g := range goroutines {
			n := goroutines*v + g // 80 and more: it shares a name with one of the first 48
			if n >= names {
				n -= names
			}
			m := mutex.New(q, "contended "+strconv.Itoa(n))
			all.Go(func() {
				for r := range rounds {
					m.Lock()
					shared[n].enter(t, m.Lease().Token())
					m.Unlock()
					if v+g == 0 && r == rounds/2 {
						for i := range c.Len() {
							assert.NoError(t, c.Node(i).Client().ScriptFlush(t.Context()).Err())
						}
					}
				}
			})
		}
	}
	all.Wait()
	sum := uint64(0)
	for n := range shared {
		assert.Equal(t, shared[n].wanted.Load(), shared[n].sum.Load(), "name %d", n)
		sum += shared[n].sum.Load()
	}
	assert.EqualValues(t, values*goroutines*rounds, sum)
	for i := range before {
		requests := float64(c.Node(i).Calls(t, "evalsha")-before[i]) / float64(sum)
		assert.Less(t, requests, 1.9, "of server %d, for a lock and an unlock", i)
	}
	e2e.Clean(t, c)
}
