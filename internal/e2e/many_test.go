package e2e_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// Each Quorum has one connection to each node, so a server with its default
// maxclients serves almost 10,000 of them. QUORATE_QUORUMS=3000 opens as many.
func TestManyQuorums(t *testing.T) {
	t.Parallel()
	quorums := many(t, "QUORATE_QUORUMS", 60)
	c := redistest.Start(t, 3)
	limit := c.Node(0).Client().ConfigGet(t.Context(), "maxclients").Val()["maxclients"]
	e2e.Open(t, c) // the nodes are no longer brand-new
	qs := make([]*quorate.Quorum, quorums)
	var all sync.WaitGroup
	room := make(chan struct{}, 50) // that connect at a time
	began := time.Now()
	for i := range qs {
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			qs[i] = e2e.OpenAt(t, c.URLs(), quorate.WithNodeTimeout(2*time.Second))
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	t.Log("connected after ", time.Since(began))
	for i := range c.Len() {
		list := ""
		assert.True(t, e2e.Eventually(func() bool {
			list = c.Node(i).Client().ClientList(t.Context()).Val()
			return strings.Count(list, " sub=1 ") == quorums+1
		}), "node %d: %d subscribed connections", i, strings.Count(list, " sub=1 "))
		assert.LessOrEqual(t, strings.Count(list, "\n"), quorums+3,
			"node %d: connections, with those of this test", i)
	}
	began = time.Now()
	held := 0
	for i, q := range qs {
		all.Go(func() {
			own := mutex.New(q, fmt.Sprint("own", i))
			assert.NoError(t, own.LockContext(deadline(t)))
			own.Unlock()
			shared := mutex.New(q, "shared")
			if assert.NoError(t, shared.LockContext(deadline(t))) {
				held++ // each has it alone
				shared.Unlock()
			}
		})
	}
	all.Wait()
	assert.Equal(t, quorums, held)
	t.Log("two locks of each of ", quorums, " took ", time.Since(began), "; maxclients ", limit)
}

// Many callers of one process lock at one moment. Each gets its lock, and no
// hold is lost. QUORATE_BURST=50000 has as many.
func TestBurst(t *testing.T) {
	c := redistest.Start(t, 3)
	seen := &tally{}
	q := e2e.Open(t, c, quorate.WithTTL(time.Minute),
		quorate.WithGuard(3*time.Minute), quorate.WithObserver(seen))
	late := lateness.Measure(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	began := time.Now()
	for i := range many(t, "QUORATE_BURST", 20_000) {
		m := mutex.New(q, strconv.Itoa(i))
		all.Go(func() { assert.NoError(t, m.LockContext(ctx)) })
	}
	all.Wait()
	t.Logf("all hold after %v", time.Since(began))
	assert.Zero(t, seen.lost.Load(), "holds lost (the machine was late by up to %v)", late.Most())
	t.Logf("connections that broke: %d", seen.down.Load())
}

// many is how many of something a test has: n, or what the environment says.
func many(t *testing.T, variable string, n int) int {
	t.Helper()
	if s := os.Getenv(variable); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	return n
}

// A process has so many connections to a server as docs/operate/deploying.md and
// docs/operate/sentinel.md say. TestThreeClusters counts those to clusters.
func TestConnectionsToANode(t *testing.T) {
	t.Parallel()
	servers, sentinels := set(t)
	plain := redistest.Start(t, 1)
	for kind, of := range map[string]struct {
		url  string
		at   *redistest.Server
		most int
	}{
		"RESP3":    {plain.Node(0).URL() + "?protocol=3&client_name=counted", plain.Node(0), 1},
		"RESP2":    {plain.Node(0).URL() + "?protocol=2&client_name=counted", plain.Node(0), 2},
		"Sentinel": {sentinels.URL() + "&client_name=counted", servers.Node(0), 1},
	} {
		count := func() int {
			list, err := of.at.Client().ClientList(t.Context()).Result()
			require.NoError(t, err)
			return strings.Count(list, "name=counted")
		}
		q := e2e.OpenAt(t, []string{of.url})
		require.NoError(t, q.Bootstrap(t.Context()))
		m := mutex.New(q, "m")
		require.NoError(t, m.LockContext(t.Context()))
		m.Unlock()
		require.True(t, e2e.Eventually(func() bool { return count() == of.most }), "%s: %d", kind, count())
		require.NoError(t, q.Close())
		require.True(t, e2e.Eventually(func() bool { return count() == 0 }), kind)
	}
}
