package mutex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/mutex"
)

// On real servers three Quorums move between accounts in random order. No two
// of them have one account at a time, and the tokens of an account rise.
func TestAllOnServers(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var mu sync.Mutex
	inside, last := map[string]int{}, map[string]uint64{}
	var all sync.WaitGroup
	for i := range 3 {
		q := e2e.Open(t, c, e2e.Timing(quiet))
		r := rand.New(rand.NewPCG(2, uint64(i)))
		all.Go(func() {
			for range 30 {
				var mine []string
				for _, k := range r.Perm(5)[:3] {
					mine = append(mine, fmt.Sprint("account ", k))
				}
				g := mutex.All(q, mine)
				assert.NoError(t, g.Do(t.Context(), func(context.Context) error {
					mu.Lock()
					for _, name := range mine {
						inside[name]++
						assert.Equal(t, 1, inside[name], name)
						token := g.Lease(name).Token()
						assert.Greater(t, token, last[name], name)
						last[name] = token
					}
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					for _, name := range mine {
						inside[name]--
					}
					return nil
				}))
			}
		})
	}
	all.Wait()

	// A mutex of one of the names keeps all from being locked.
	q := e2e.Open(t, c, e2e.Timing(quiet))
	m, g := mutex.New(q, "account 1"), mutex.All(q, []string{"account 2", "account 1", "account 0"})
	m.Lock()
	require.ErrorIs(t, g.TryLockContext(t.Context()), quorate.ErrHeld)
	assert.Nil(t, g.Lease("account 0"))
	m.Unlock()
	require.NoError(t, g.LockContext(t.Context()))
	require.ErrorIs(t, m.TryLockContext(t.Context()), quorate.ErrHeld)
	g.Unlock()
}
