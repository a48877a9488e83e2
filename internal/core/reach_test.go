package core

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
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
	line := log.await(t, "WARN quorate: 1 of 3 nodes connected, 2 needed; waiting")
	assert.NotContains(t, line, c.Node(0).Addr())
	for i := 1; i < 3; i++ {
		assert.Contains(t, line, c.Node(i).Addr()+"=not connected: ")
	}
	assert.Contains(t, line, "connection refused")
}

// A node that evicts keys is warned of as the connection begins, and once.
func TestEvictionIsWarnedOf(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	require.NoError(t, c.Node(1).Client().ConfigSet(t.Context(), "maxmemory-policy", "volatile-ttl").Err())
	log := make(lines, 1000)
	set := setup.Defaults()
	set.Logger = slog.New(log)
	q, err := New([]redis.UniversalClient{c.Node(0).Client(), c.Node(1).Client(), c.Node(2).Client()}, set)
	require.NoError(t, err)
	require.NoError(t, q.Bootstrap(within(t)))
	line := log.await(t, "may throw away leases; set its maxmemory-policy to noeviction")
	assert.Contains(t, line, "WARN")
	assert.Contains(t, line, "node="+c.Node(1).Addr())
	assert.Contains(t, line, "maxmemory-policy=volatile-ttl")
	n := q.nodes.at(1)
	require.Eventually(t, func() bool { return n.Err() == nil || q.nodes.at(1).Err() == nil }, time.Minute, time.Millisecond)
	n = q.nodes.at(1)
	for range 2 {
		n.Link.Reconnect(fault.ErrRejudged)
		log.await(t, "DEBUG quorate: node is up node="+n.addr)
	}
	require.NoError(t, q.Close(context.Background()))
	close(log)
	for line := range log {
		assert.NotContains(t, line, "may throw away leases", "once is enough")
	}
}

// The line comes again when it says something else, and in no other case.
func TestTooFewNodesAreLoggedOnce(t *testing.T) {
	t.Parallel()
	r := reach{timer: time.NewTimer(time.Hour), armed: true, pause: reachPause}
	missing := func(port int, nodes ...string) *fault.Failure {
		f := &fault.Failure{}
		for _, n := range nodes {
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n, Err: fmt.Errorf("read tcp 127.0.0.1:%d->127.0.0.2:6379: reset", port)})
		}
		return f
	}
	assert.True(t, r.note(false, missing(5001, "a", "b")))
	assert.False(t, r.note(false, missing(5002, "a", "b")), "another local port is no news")
	assert.True(t, r.note(false, missing(5003, "a", "c")))
	other := missing(5003, "a", "c")
	other.Nodes[0].Err = errors.New("refused")
	assert.True(t, r.note(false, other))
	expired := func(now time.Time) *fault.Failure { // as Certificate.Verify words it
		err := x509.CertificateInvalidError{Reason: x509.Expired, Detail: fmt.Sprintf("current time %s is after %s", now.Format(time.RFC3339), time.Unix(0, 0).Format(time.RFC3339))}
		return &fault.Failure{Nodes: []fault.NodeFailure{{Addr: "a", Err: err}}}
	}
	assert.True(t, r.note(false, expired(time.Now())))
	assert.False(t, r.note(false, expired(time.Now().Add(time.Minute))), "the time of day is no news")
	assert.Equal(t, 16*reachPause, r.pause, "the more lines, the seldomer")
	assert.False(t, r.note(false, nil))
	assert.False(t, r.armed, "a quorum is connected: the episode is over")
	assert.False(t, r.note(true, other), "the Quorum is closed")
}
