package transport_test

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// A leave reaches a node that was stopped until the connection broke, and the
// join that lay in the old connection does not come back after it.
func TestLeaveAfterLongStop(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	var log events
	l := open(t, node.Client(), log.config(transport.Config{Stall: 300 * time.Millisecond}))
	require.NoError(t, node.Stop())
	join, before := newCall("SET", "claim1", "id"), lasting("DEL", "claim1", "claim2")
	late := newCall("SET", "claim2", "id")
	send(l, join, before, late)
	_, err := join.wait(t)
	assert.ErrorIs(t, err, transport.ErrBroken)
	_, err = late.wait(t)
	assert.ErrorIs(t, err, transport.ErrBroken)
	assert.Zero(t, before.replies.Load())
	after := lasting("DEL", "claim2")
	send(l, after)
	time.Sleep(500 * time.Millisecond) // more than one attempt to connect
	require.NoError(t, node.Cont())
	_, err = before.wait(t)
	assert.NoError(t, err)
	_, err = after.wait(t)
	assert.NoError(t, err)
	time.Sleep(500 * time.Millisecond) // the node has read the old connection, too
	assert.Zero(t, node.Client().Exists(t.Context(), "claim1", "claim2").Val())
}

func TestLeaveAfterRestart(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1, redistest.WithAOF("always")).Node(0)
	var log events
	l := open(t, node.Client(), log.config(transport.Config{}))
	_, err := do(t, l, "SET", "claim", "id")
	require.NoError(t, err)
	require.NoError(t, node.Kill())
	eventually(t, "refused", func() bool {
		return log.count("down") == 1 && strings.Contains(fmt.Sprint(l.State(time.Now()).Err), "refused")
	})
	leave, expired := lasting("DEL", "claim"), lasting("DEL", "other")
	expired.until = time.Now().Add(50 * time.Millisecond)
	send(l, leave, expired)
	_, err = do(t, l, "PING")
	assert.ErrorIs(t, err, transport.ErrDown)
	assert.ErrorContains(t, err, "refused")
	_, err = expired.wait(t)
	assert.ErrorIs(t, err, transport.ErrDown)
	require.NoError(t, node.Restart())
	v, err := leave.wait(t)
	assert.NoError(t, err)
	assert.Equal(t, "1", v)
}

// What is still in the buffers of a connection that has broken does not arrive
// late: TCP would repeat it for a minute after a cut. What Close has sent does.
func TestNothingArrivesOfABrokenConnection(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{false, true} {
		resume, end := make(chan struct{}), make(chan error, 1)
		f := newFake(t, func(fc *fakeConn, words []string) string {
			if words[0] == "STOP" {
				<-resume
				_, err := io.Copy(io.Discard, fc.Conn)
				end <- err
			}
			return ":1\r\n"
		})
		cfg := transport.Config{MaxBytes: 64 << 20}
		if closed {
			cfg.Stall = time.Minute // else a busy machine gives up the connection before Close
		}
		l := open(t, f.client(t), cfg)
		send(l, newCall("STOP"))
		for range 320 {
			send(l, newCall("LATE", strings.Repeat("x", 100_000)))
		}
		if closed {
			shut(l)
			close(resume)
			assert.NoError(t, <-end)
			continue
		}
		eventually(t, "another connection", func() bool { return f.ids.Load() == 2 })
		close(resume)
		assert.ErrorIs(t, <-end, syscall.ECONNRESET)
	}
}

// What is kept for a node that stays away is bounded, and given up in the end.
func TestKeptIsBounded(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	l := open(t, client, transport.Config{MaxPending: 100})
	var calls []*call
	for range 80 {
		calls = append(calls, lasting("DEL", "x"))
		send(l, calls[len(calls)-1])
	}
	for _, c := range calls[50:] {
		_, err := c.wait(t)
		assert.ErrorIs(t, err, transport.ErrDown)
	}
	for _, c := range calls[:50] {
		assert.Zero(t, c.replies.Load())
	}
	assert.ErrorContains(t, shut(l), "50 commands")
	for _, c := range calls[:50] {
		assert.EqualValues(t, 1, c.replies.Load())
		assert.ErrorIs(t, c.err, transport.ErrClosed)
	}
}
