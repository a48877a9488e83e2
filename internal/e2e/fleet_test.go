package e2e_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// connectAll connects so many clients at once, and waits until each has its
// node.
func connectAll(t *testing.T, n int, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var failed atomic.Int64
	for range n {
		all.Go(func() {
			q, err := quorate.Connect(ctx, []string{url})
			if err != nil {
				if failed.Add(1) == 1 {
					t.Error(err)
				}
				return
			}
			_ = q.Close()
		})
	}
	all.Wait()
	assert.Zero(t, failed.Load(), "of %d clients", n)
}

// Many clients that connect at once over a narrow way all get in. That takes
// many times as long as one step of a handshake may take. No client sends a
// script twice, or to a node that knows it.
func TestFleetConnectsAtOnce(t *testing.T) {
	t.Parallel()
	const clients = 60
	sources := 0
	for _, s := range script.All() {
		sources += len(s.Source)
	}
	c := redistest.Start(t, 1)
	ways, urls := proxy.Start(t, c.URLs(), proxy.Fault{Rate: 600 << 10}) // the scripts of all take 4 s
	w, url := ways[0], urls[0]
	began := time.Now()
	connectAll(t, clients, url)
	cold := w.Sent()
	t.Logf("node without scripts: %v, %d kB sent", time.Since(began), cold>>10)
	assert.Less(t, cold, int64(clients*(sources+16<<10)), "more than once")

	began = time.Now()
	connectAll(t, clients, url)
	warm := w.Sent() - cold
	t.Logf("node with scripts: %v, %d kB sent", time.Since(began), warm>>10)
	assert.Less(t, warm, int64(clients*4<<10))
}
