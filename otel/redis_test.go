package otel_test

import (
	"context"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
)

// The same on a redis-server.
func TestMetricsAtRestOnRedis(t *testing.T) {
	server, err := exec.LookPath("redis-server")
	require.NoError(t, err, "make redis installs it")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	require.NoError(t, free.Close())
	node := exec.Command(server, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	require.NoError(t, node.Start())
	t.Cleanup(func() {
		_ = node.Process.Kill()
		_ = node.Wait()
	})

	s := newSink(t)
	var qs []*quorate.Quorum
	for range 2 {
		ctx, cancel := deadline(t)
		q, err := quorate.Connect(ctx, []string{"127.0.0.1:" + port}, append(s.options(), quorate.WithLogger(nil))...)
		cancel()
		require.NoError(t, err)
		t.Cleanup(func() { _ = q.Close() })
		qs = append(qs, q)
	}
	ctx, cancel := deadline(t)
	defer cancel()
	require.NoError(t, qs[0].Bootstrap(ctx))
	atRest(t, s, qs...)
	require.Eventually(t, func() bool { return s.metrics()["quorate.node.up 127.0.0.1:"+port] == 1 }, time.Minute, time.Millisecond)
}

// deadline is a context for a call that succeeds.
func deadline(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), time.Minute)
}
