package core

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// No matter how much a process records at one moment, no connection breaks, and
// no renewal waits for it.
func TestManyValuesAtOnce(t *testing.T) {
	t.Parallel()
	assert.Zero(t, breaksByValues(t), "connections that broke")
}

// underWay waits until so many operations on records are under way.
func underWay(t *testing.T, q *Quorum, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		asking := 0
		for _, i := range q.records.list() {
			i.mu.Lock() // it is free when what it asks for is on its way
			if i.asked != 0 {
				asking++
			}
			i.mu.Unlock()
		}
		return asking >= n
	}, time.Minute, time.Millisecond)
}

// breaksByValues records many long values while a node stands still, and counts
// the connections that break.
func breaksByValues(t *testing.T) int {
	const values, size = 40, 512 << 10
	c := redistest.Start(t, 1)
	var down atomic.Int32
	q := observed(t, c, func(e setup.Event) {
		if e.Kind == setup.EventNodeDown {
			down.Add(1)
		}
	})
	holds := make([]Hold, values)
	for i := range holds {
		holds[i] = held(t, q, fmt.Sprint("n", i))
	}
	value := make([]byte, size)
	var all sync.WaitGroup
	require.NoError(t, c.Node(0).Stop())
	for _, h := range holds {
		all.Go(func() { assert.NoError(t, q.Register(h.a.spec).Put(t.Context(), h, 0, value, time.Hour)) })
	}
	underWay(t, q, values)
	renewed := make(chan error, 1)
	go func() { renewed <- holds[0].Renew(t.Context()) }()
	require.NoError(t, c.Node(0).Cont())
	assert.NoError(t, <-renewed)
	all.Wait()
	for _, h := range holds {
		h.Release()
	}
	return int(down.Load())
}

// No matter how many records a process watches, a new connection does not break
// because of them.
func TestManyWatchesSurviveAReconnect(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 1, breaksByWatches(t), "connections that broke, with the one that was cut")
}

// beforeWrites is a connection that shows what it is about to write.
type beforeWrites struct {
	net.Conn
	show func(p []byte)
}

func (c beforeWrites) Write(p []byte) (int, error) {
	c.show(p)
	return c.Conn.Write(p)
}

// breaksByWatches has a connection break while many records are watched, and
// the node stand still before the first of them is asked for on the next one.
// It counts the connections that break.
func breaksByWatches(t *testing.T) int {
	const watches = 4000 // of which each asks with 4.3 kB, 17 MB in all
	c := redistest.Start(t, 1)
	var down atomic.Int32
	var cut atomic.Bool
	stopped := make(chan struct{})
	options := c.Node(0).Client().Options()
	dial := options.Dialer
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		next := cut.Load() // on the one that is cut watches may ask before it is known to be
		return beforeWrites{conn, func(p []byte) {
			if next && bytes.Contains(p, []byte("xxxxxxxx")) && cut.Swap(false) {
				assert.NoError(t, c.Node(0).Stop())
				close(stopped)
			}
		}}, err
	}
	// Without the rule the watches may not have left by the end of Close.
	q := opened(t, endless(func(e setup.Event) {
		if e.Kind == setup.EventNodeDown {
			down.Add(1)
		}
	}), c.Node(0))
	require.NoError(t, q.Bootstrap(within(t)))
	connected(t, q)
	all := make([]*Watch, watches)
	for i := range all {
		s, err := q.NewSpec(Spec{Name: fmt.Sprint(i, strings.Repeat("x", 1000)),
			Weight: 1, Capacity: 1, Set: &q.Set})
		require.NoError(t, err)
		all[i] = q.Register(s).Watch()
	}
	for _, w := range all {
		<-w.Changed()
	}
	cut.Store(true)
	require.NoError(t, c.Node(0).Client().ClientKillByFilter(t.Context(), "SKIPME", "yes").Err())
	<-stopped
	underWay(t, q, watches)
	require.NoError(t, c.Node(0).Cont())
	require.Eventually(t, func() bool {
		q.records.mu.Lock()
		defer q.records.mu.Unlock()
		return len(q.records.all) == 0 || down.Load() > 1
	}, time.Minute, time.Millisecond)
	for _, w := range all {
		w.Close()
	}
	return int(down.Load())
}
