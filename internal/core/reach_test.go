package core

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// lines is a slog.Handler that passes on each line as text.
type lines chan string

func (l lines) Enabled(context.Context, slog.Level) bool { return true }
func (l lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l lines) WithGroup(string) slog.Handler            { return l }

func (l lines) Handle(_ context.Context, r slog.Record) error {
	text := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	l <- text
	return nil
}

// await returns the first line that says so, and fails the test if none comes.
func (l lines) await(t *testing.T, says string) string {
	t.Helper()
	ctx := within(t)
	for {
		select {
		case line := <-l:
			if strings.Contains(line, says) {
				return line
			}
		case <-ctx.Done():
			require.Fail(t, "the log does not say: "+says)
		}
	}
}

// A Quorum without a majority of nodes says so, with the cause of each.
func TestTooFewNodesAreLogged(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	require.NoError(t, c.Node(1).Kill())
	require.NoError(t, c.Node(2).Kill())
	log := make(lines, 1000)
	set := setup.Defaults()
	set.Logger = slog.New(log)
	q, err := New([]redis.UniversalClient{c.Node(0).Client(), c.Node(1).Client(), c.Node(2).Client()}, set)
	require.NoError(t, err)
	defer func() { _ = q.Close(context.Background()) }()
	line := log.await(t, "WARN quorate: 1 of 3 nodes connected, 0 can vote")
	assert.NotContains(t, line, c.Node(0).Addr())
	for i := 1; i < 3; i++ {
		assert.Contains(t, line, c.Node(i).Addr()+": not connected: ")
	}
	assert.Contains(t, line, "connection refused")
}

// A node that evicts keys is warned of as the connection begins, and once.
func TestEvictionIsWarnedOf(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	require.NoError(t, c.Node(1).Client().ConfigSet(t.Context(), "maxmemory-policy", "volatile-ttl").Err())
	log := make(lines, 1000)
	set := patient()
	set.Logger = slog.New(log)
	q, err := New([]redis.UniversalClient{c.Node(0).Client(), c.Node(1).Client(), c.Node(2).Client()}, set)
	require.NoError(t, err)
	require.NoError(t, q.Bootstrap(within(t)))
	line := log.await(t, "may discard leases when its memory is full; set maxmemory-policy noeviction")
	assert.Contains(t, line, "WARN")
	assert.Contains(t, line, "node="+c.Node(1).Addr())
	assert.Contains(t, line, "maxmemory-policy=volatile-ttl")
	n := q.Nodes.At(1)
	require.Eventually(t, func() bool { return n.Err() == nil || q.Nodes.At(1).Err() == nil },
		time.Minute, time.Millisecond)
	n = q.Nodes.At(1)
	for range 2 {
		n.Link.Reconnect(fault.ErrRejudged)
		log.await(t, "DEBUG quorate: node is up node="+n.Addr)
	}
	require.NoError(t, q.Close(context.Background()))
	close(log)
	for line := range log {
		assert.NotContains(t, line, "may discard leases", "once is enough")
	}
}
