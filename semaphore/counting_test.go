package semaphore_test

import (
	"context"
	"net"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/semaphore"
)

// overlapping returns three participants of a semaphore of two permits on
// three servers, of which each cannot reach another one: any two of the three
// meet on just one server, and each server hears of just two of them.
func overlapping(t *testing.T) (s [3]*semaphore.Weighted) {
	t.Helper()
	c := redistest.Start(t, 3)
	e2e.Open(t, c) // declares them ready
	for i := range s {
		var nodes []redis.UniversalClient
		for j := range 3 {
			o := &redis.Options{Addr: c.Node(j).Addr()}
			if i == j {
				o.Dialer = func(context.Context, string, string) (net.Conn, error) { return nil, syscall.EHOSTUNREACH }
			}
			client := redis.NewClient(o)
			t.Cleanup(func() { _ = client.Close() })
			nodes = append(nodes, client)
		}
		q, err := quorate.New(nodes, quorate.WithLogger(nil))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		s[i] = semaphore.NewWeighted(q, "s", 2)
	}
	return s
}

// TestCounting is the counter-example to counting votes: two of three servers
// have room for each of the three.
func TestCounting(t *testing.T) {
	t.Parallel()
	s := overlapping(t)
	require.NoError(t, s[0].Acquire(t.Context(), 1))
	require.NoError(t, s[1].Acquire(t.Context(), 1))
	require.False(t, s[2].TryAcquire(1), "a third holder of two permits")
	s[0].Release(1)
	require.NoError(t, s[2].Acquire(t.Context(), 1), "and it is not refused forever")
	s[1].Release(1)
	s[2].Release(1)
}
