package transport_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// A connection follows the master that the Sentinels name, also when the one of
// before still answers, for commands and for pushes.
func TestFollowsTheMaster(t *testing.T) {
	t.Parallel()
	nodes := redistest.Start(t, 2)
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			t.Parallel()
			var at atomic.Value
			var dials atomic.Int32
			at.Store(nodes.Node(0).Addr())
			client := redis.NewClient(&redis.Options{
				Addr: transport.SentinelAddr, Protocol: protocol,
				Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
					dials.Add(1)
					return new(net.Dialer).DialContext(ctx, network, at.Load().(string))
				},
			})
			defer client.Close()
			var log events
			name := fmt.Sprint("ch", protocol)
			l := open(t, client, log.config(transport.Config{Channel: name, Stall: time.Second}))
			eventually(t, "subscribed", func() bool { return log.count("subscribed") == 1 })
			first, before := l.State(time.Now()).Info.RunID, dials.Load()
			eventually(t, "asked", func() bool { return dials.Load() > before })
			assert.Zero(t, log.count("down"), "the same master")
			at.Store(nodes.Node(1).Addr())
			eventually(t, "the other master", func() bool { s := l.State(time.Now()); return s.Err == nil && s.Info.RunID != first })
			eventually(t, "its pushes", func() bool {
				nodes.Node(1).Client().Publish(t.Context(), name, "x")
				return log.count("push x") > 0
			})
			require.NoError(t, shut(l))
		})
	}
}
