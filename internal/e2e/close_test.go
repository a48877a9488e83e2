package e2e_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/memory"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/rwmutex"
)

// An ordinary shutdown: main closes the Quorum while other goroutines wait, or
// are about to. It must release what is held, and not end the process.
func TestCloseWhileGoroutinesWait(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	var log e2e.Log
	q, other := e2e.Open(t, c, log.Option()), e2e.Open(t, c)
	holder, held := mutex.New(other, "taken"), mutex.New(q, "held")
	require.NoError(t, holder.LockContext(t.Context()))
	require.NoError(t, held.LockContext(t.Context()))
	returned := make(chan string, 5)
	for what, wait := range map[string]func(){
		"the nodes' queue": mutex.New(q, "taken").Lock,
		"the local queue":  held.Lock,
		"RLock":            rwmutex.New(q, "taken").RLock, // of another kind: it tries again and again
		"once.Do":          func() { once.New(q, "taken").Do(func() {}) },
	} {
		go func() {
			wait()
			returned <- what
		}()
	}
	waiting := func(n int) func() bool {
		return func() bool {
			h, err := holder.Holder(t.Context())
			return err == nil && h.Waiters == n
		}
	}
	require.True(t, e2e.Eventually(waiting(2)))
	require.NoError(t, q.Close())
	next := mutex.New(other, "held")
	require.True(t, e2e.Eventually(next.TryLock), "Close releases what is held")
	require.True(t, e2e.Eventually(waiting(0)))
	go func() {
		mutex.New(q, "after").Lock()
		returned <- "Lock after Close"
	}()
	require.True(t, e2e.Eventually(func() bool { return len(log.Lines("waits forever")) == 5 }))
	assert.Empty(t, returned, "a call that returns without the lock")
	next.Unlock()
	holder.Unlock()
}

// A process gives many locks back, waits for none of these releases, and closes
// its Quorum. The nodes acknowledge them for many node timeouts. Close waits
// for all of them.
func TestCloseDeliversEarlierUnlocks(t *testing.T) {
	t.Parallel()
	const locks = 4000
	c := redistest.Start(t, 3)
	proxies, through := proxy.Start(t, c.URLs(), proxy.Fault{})
	q := e2e.OpenAt(t, through, quorate.WithTTL(time.Minute), quorate.WithGuard(3*time.Minute))
	require.NoError(t, q.Bootstrap(deadline(t)))
	ms := make([]*mutex.Mutex, locks)
	for i := range ms {
		ms[i] = mutex.New(q, fmt.Sprint("name", i))
		require.NoError(t, ms[i].LockContext(deadline(t)))
	}
	for _, p := range proxies {
		p.Impose(proxy.Up, proxy.Any, proxy.Fault{Rate: 200_000})
	}
	for _, m := range ms {
		m.Unlock()
	}
	require.NoError(t, q.Close())
	e2e.Clean(t, c)
}

// Close comes at each moment of a recording, whose nodes answer after a second.
// Nothing goes on after it: a bubble does not end before its goroutines.
func TestCloseWhileTheNodesRecordTheirSet(t *testing.T) {
	for at := range 30 {
		for _, declared := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				nodes := memory.NewNodes(3)
				for _, n := range nodes {
					n.Delay(time.Second)
				}
				q, err := quorate.New(nodes.Clients(t), nodes.Option())
				require.NoError(t, err)
				ended := make(chan error, 1)
				go func() {
					if declared {
						ended <- q.Bootstrap(t.Context())
					} else {
						ended <- mutex.New(q, "m").LockContext(t.Context())
					}
				}()
				time.Sleep(time.Duration(at) * time.Second / 3)
				_ = q.Close() // it says what the nodes did not answer
				if err := <-ended; err != nil {
					assert.ErrorIs(t, err, quorate.ErrClosed)
				}
			})
		}
	}
}
