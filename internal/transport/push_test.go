package transport_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

func TestPush(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	var log events
	l := open(t, node.Client(), log.config(transport.Config{Channel: "ch", Stall: 300 * time.Millisecond}))
	subscribed := func(n int) {
		t.Helper()
		eventually(t, "subscribed", func() bool { return log.count("subscribed") == n })
	}
	subscribed(1)
	for i := range 100 {
		require.NoError(t, node.Client().Publish(t.Context(), "ch", fmt.Sprint(i)).Err())
	}
	eventually(t, "pushed", func() bool { return log.count("push 99") == 1 })
	time.Sleep(700 * time.Millisecond)
	assert.Zero(t, log.count("push down"), "silence is kept alive by pings")

	// A node that stops is noticed, and a new subscription reports what it did not publish.
	require.NoError(t, node.Stop())
	eventually(t, "push down", func() bool { return log.count("push down") == 1 })
	require.NoError(t, node.Cont())
	subscribed(2)

	require.NoError(t, node.Kill())
	eventually(t, "push down", func() bool { return log.count("push down") == 2 })
	require.NoError(t, node.Restart())
	subscribed(3)
	require.NoError(t, node.Client().Publish(t.Context(), "ch", "again").Err())
	eventually(t, "pushed", func() bool { return log.count("push again") == 1 })
	assert.NoError(t, shut(l))
}

func TestPushForbidden(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_ *fakeConn, words []string) string {
		if words[0] == "SUBSCRIBE" {
			return "-NOPERM no channel\r\n"
		}
		return "+OK\r\n"
	})
	var log events
	cfg := log.config(transport.Config{Channel: "ch"})
	down := make(chan error, 10)
	cfg.PushDown = func(err error) { down <- err }
	l := open(t, f.client(t), cfg)
	assert.ErrorContains(t, <-down, "NOPERM")
	_, err := do(t, l, "X")
	assert.NoError(t, err, "commands do not need pushes")
}
