package quorate_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// server is one of our own making. It answers each command with what answer
// returns.
func server(t *testing.T, answer func(line string) string) (addr string) {
	return redistest.Answer(t, func(words []string) string { return answer(strings.Join(words, " ")) })
}

// What no waiting can change fails at once, long before the context ends.
func TestRefusedAtOnce(t *testing.T) {
	redis5 := server(t, func(line string) string {
		switch {
		case strings.HasPrefix(line, "HELLO"), strings.HasPrefix(line, "hello"):
			return "-ERR unknown command `HELLO`, with args beginning with:\r\n"
		case strings.HasPrefix(strings.ToUpper(line), "AUTH"):
			return "-ERR invalid password\r\n"
		}
		return "-NOAUTH Authentication required.\r\n"
	})
	redis4 := server(t, func(line string) string {
		switch {
		case line == "INFO server":
			return "$22\r\nredis_version:4.0.14\r\n\r\n"
		case strings.EqualFold(line, "ping"), strings.HasPrefix(line, "SCRIPT LOAD"):
			return "+OK\r\n"
		case strings.HasPrefix(line, "EVALSHA"):
			return "-ERR Error running script (call to f_0): @user_script: 3: Write commands not allowed after non " +
				"deterministic commands\r\n"
		}
		return "-ERR unknown command\r\n"
	})
	seven := redistest.Start(t, 1).Node(0).Addr()
	for url, want := range map[string]string{
		"redis://:wrong@" + redis5: "ERR invalid password",
		"redis://" + redis4:        "server version 4.0.14 is too old",
		"redis://" + seven + "/99": "ERR DB index is out of range",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := quorate.Connect(ctx, []string{url})
		assert.ErrorIs(t, err, quorate.ErrNoQuorum)
		assert.ErrorContains(t, err, want)
		assert.NoError(t, ctx.Err(), want)
		o, err := redis.ParseURL(url)
		require.NoError(t, err)
		client := redis.NewClient(o)
		q, err := quorate.New([]redis.UniversalClient{client}, quorate.WithLogger(nil))
		require.NoError(t, err)
		_, err = q.Check(ctx)
		for _, err := range []error{err, mutex.New(q, "m").LockContext(ctx)} {
			assert.ErrorIs(t, err, quorate.ErrNoQuorum)
			assert.ErrorContains(t, err, want)
			assert.NoError(t, ctx.Err(), want)
		}
		assert.NoError(t, q.Close())
		assert.NoError(t, client.Close())
		cancel()
	}
}

// A client that cannot be used is named by its address.
func TestLimiterIsRefused(t *testing.T) {
	t.Parallel()
	var nodes []redis.UniversalClient
	for _, o := range []*redis.Options{{Addr: "a:1"}, {Addr: "b:1", Limiter: limiter{}}} {
		c := redis.NewClient(o)
		t.Cleanup(func() { _ = c.Close() })
		nodes = append(nodes, c)
	}
	_, err := quorate.New(nodes, quorate.WithLogger(nil))
	assert.ErrorIs(t, err, quorate.ErrInvalid)
	assert.ErrorContains(t, err, "node b:1: the client has a Limiter")
}

type limiter struct{}

func (limiter) Allow() error       { return nil }
func (limiter) ReportResult(error) {}

// The client of a Sentinel set that takes it for a cluster is refused: it would
// exclude no other client of the set.
func TestFailoverClusterClientIsRefused(t *testing.T) {
	t.Parallel()
	c := redis.NewFailoverClusterClient(&redis.FailoverOptions{MasterName: "m",
		SentinelAddrs: []string{"127.0.0.1:1"}})
	defer c.Close()
	_, err := quorate.New([]redis.UniversalClient{c}, quorate.WithLogger(nil),
		quorate.WithNodeNames("sentinel:m@127.0.0.1:1"))
	assert.ErrorIs(t, err, quorate.ErrInvalid)
	assert.ErrorContains(t, err, "use quorate.NewFailoverClient")
}
