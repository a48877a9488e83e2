package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
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
		ps, urls := e2e.Proxies(t, c.URLs(), proxy.Fault{})
		for j, p := range ps {
			p.Impose(proxy.Both, proxy.Any, proxy.Fault{Delay: time.Duration((i+j)%n) * time.Millisecond})
		}
		q := e2e.OpenAt(t, urls, e2e.Timing(2*time.Second))
		clients[i] = func(name string) *mutex.Mutex { return mutex.New(q, name) }
		require.NoError(t, clients[i]("warm").Do(t.Context(), func(context.Context) error { return nil }))
	}
	judged := 0
	for round := 0; judged < 20 && round < 100; round++ {
		var all sync.WaitGroup
		var got [n]error
		start := make(chan struct{})
		for i, open := range clients {
			m := open(fmt.Sprint("job ", round))
			all.Go(func() {
				<-start
				got[i] = m.TryLockContext(t.Context())
			})
		}
		close(start)
		all.Wait()
		winners, heard := 0, late.Most() <= 100*time.Millisecond
		late.Reset()
		for _, err := range got {
			if err == nil {
				winners++
			}
			heard = heard && !errors.Is(err, quorate.ErrNoQuorum)
		}
		if winners == 0 && !heard {
			continue // answers came later than a try waits for them
		}
		judged++
		assert.Equal(t, 1, winners, "round %d: %v", round, got)
	}
	assert.NotZero(t, judged, "no round had its answers in time")
}
