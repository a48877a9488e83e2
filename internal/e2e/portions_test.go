package e2e_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/rwmutex"
)

// A node gives no more than 32 claims the vote in one request. The others
// follow at once all the same: their next beats are minutes away.
func TestReadersFollowAWriter(t *testing.T) {
	t.Parallel()
	const readers = 150
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(10*time.Minute))
	writer := rwmutex.New(q, "x")
	require.NoError(t, writer.LockContext(deadline(t)))
	var in, all sync.WaitGroup
	in.Add(readers)
	for range readers {
		reader := rwmutex.New(q, "x") // a claim of its own
		all.Go(func() {
			err := reader.RLockContext(deadline(t))
			in.Done()
			in.Wait() // a leave would have the node go on, too
			if assert.NoError(t, err) {
				reader.RUnlock()
			}
		})
	}
	for i := range c.Len() {
		require.True(t, e2e.Eventually(func() bool {
			f := strings.Fields(c.Node(i).Client().Get(t.Context(), "quorate:{x}").Val())
			return len(f) > 7 && f[7] == "150"
		}))
	}
	writer.Unlock()
	all.Wait()
	e2e.Clean(t, c)
}

// A node tells no more than 32 watchers of a change in one request. The others
// hear of it at once all the same.
func TestManyObservers(t *testing.T) {
	t.Parallel()
	const observers = 100
	c := redistest.Start(t, 3)
	timing := e2e.Timing(10 * time.Minute)
	q := e2e.Open(t, c, timing)
	watches := e2e.OpenAt(t, c.URLs(), timing)
	ctx := deadline(t)
	var seen, all sync.WaitGroup
	seen.Add(observers)
	for range observers {
		all.Go(func() {
			first := true
			for l := range leader.New(watches, "e").Observe(ctx) {
				if first {
					seen.Done()
					first = false
				}
				if l.Value == "one" {
					return
				}
			}
			t.Error("an observer has not heard of the leader")
		})
	}
	seen.Wait()
	e := leader.New(q, "e", leader.WithID("one"))
	require.NoError(t, e.Campaign(ctx, "one"))
	all.Wait()
	require.NoError(t, e.Resign(ctx))
}
