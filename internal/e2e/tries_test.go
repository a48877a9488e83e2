package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// Five processes try a free name at the same moment, and each is the closest to
// a node of its own. One of them has it, every time: a job that a scheduler
// starts everywhere at once, behind a TryLock, runs once.
func TestOneOfManyTries(t *testing.T) {
	const n = 5
	late := lateness.Measure(t)
	c := redistest.Start(t, n)
	var clients [n]func(name string) *mutex.Mutex
	for i := range clients {
		ps, urls := proxy.Start(t, c.URLs(), proxy.Fault{})
		for j, p := range ps {
			p.Impose(proxy.Both, proxy.Any, proxy.Fault{Delay: time.Duration((i+j)%n) * time.Millisecond})
		}
		q := e2e.OpenAt(t, urls, e2e.Timing(2*time.Second))
		clients[i] = func(name string) *mutex.Mutex { return mutex.New(q, name) }
		require.NoError(t, clients[i]("warm").Do(t.Context(), func(context.Context) error { return nil }))
	}
	for round := range 20 {
		var all sync.WaitGroup
		var got [n]bool
		start := make(chan struct{})
		for i, open := range clients {
			m := open(fmt.Sprint("job ", round))
			all.Go(func() {
				<-start
				got[i] = m.TryLock()
			})
		}
		close(start)
		all.Wait()
		winners := 0
		for _, won := range got {
			if won {
				winners++
			}
		}
		if winners == 0 && late.Most() > 100*time.Millisecond {
			late.Reset()
			continue // answers came later than a try waits for them
		}
		assert.Equal(t, 1, winners, "round %d: %v", round, got)
	}
}
