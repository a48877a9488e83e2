package e2e_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// sentinel is a Sentinel that names one master whatever it is asked.
func sentinel(t *testing.T, master string) (addr string) {
	host, port, err := net.SplitHostPort(master)
	require.NoError(t, err)
	answer := string(resp.AppendCommand(nil, host, port))
	return redistest.Answer(t, func(words []string) string {
		if strings.EqualFold(words[0], "SENTINEL") && strings.EqualFold(words[1], "GET-MASTER-ADDR-BY-NAME") {
			return answer
		}
		if strings.EqualFold(words[0], "PING") {
			return "+PONG\r\n"
		}
		return "-ERR unknown command\r\n"
	})
}

// One Sentinel of three lies. Its address is never contacted, however fast it
// answers, and the set works as if it were down.
func TestSentinelThatLies(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, 1, redistest.WithPassword("secret")).Node(0)
	var contacts atomic.Int32
	trap := redistest.Serve(t, func(net.Conn) { contacts.Add(1) })
	addrs := []string{sentinel(t, trap), sentinel(t, master.Addr()), sentinel(t, master.Addr())}
	for range 20 {
		q, err := quorate.Connect(deadline(t),
			[]string{"redis://" + addrs[0] + "?master_name=m&addr=" + addrs[1] + "&addr=" + addrs[2] +
				"&password=secret"})
		require.NoError(t, err)
		require.NoError(t, q.Close())
	}
	client := quorate.NewFailoverClient(&redis.FailoverOptions{MasterName: "m",
		SentinelAddrs: addrs, Password: "secret"})
	defer client.Close()
	q, err := quorate.New([]redis.UniversalClient{client})
	require.NoError(t, err)
	require.NoError(t, q.Bootstrap(t.Context()))
	require.NoError(t, q.Close())
	assert.NoError(t, client.Ping(t.Context()).Err(), "the client by itself")
	assert.Zero(t, contacts.Load())

	plain := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m",
		SentinelAddrs: addrs, Password: "secret"})
	defer plain.Close()
	_, err = quorate.New([]redis.UniversalClient{plain},
		quorate.WithNodeNames("sentinel:m@"+strings.Join(addrs, ",")))
	require.ErrorIs(t, err, quorate.ErrInvalid)
	assert.ErrorContains(t, err, "quorate.NewFailoverClient")
	assert.Zero(t, contacts.Load())
}

// Two Sentinels that disagree are no majority. The error says what each said.
func TestSentinelsThatDisagree(t *testing.T) {
	t.Parallel()
	var contacts atomic.Int32
	trap := redistest.Serve(t, func(net.Conn) { contacts.Add(1) })
	gone := "127.0.0.1:" + freePort(t)
	a, b := sentinel(t, trap), sentinel(t, "lock-a:6379")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := quorate.Connect(ctx, []string{"redis://" + a + "?master_name=m&addr=" + b + "&addr=" + gone},
		quorate.WithLogger(nil))
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.ErrorContains(t, err, "Sentinel "+a+" names "+trap)
	assert.ErrorContains(t, err, "Sentinel "+b+" names lock-a:6379")
	assert.ErrorContains(t, err, "Sentinel "+gone+": dial tcp")
	assert.Zero(t, contacts.Load())
}
