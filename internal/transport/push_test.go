package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

func TestPush(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) { t.Parallel(); pushes(t, protocol) })
	}
}

func pushes(t *testing.T, protocol int) {
	node := redistest.Start(t, 1).Node(0)
	client := redis.NewClient(&redis.Options{Addr: node.Addr(), Protocol: protocol})
	defer client.Close()
	var log events
	l := open(t, client, log.config(transport.Config{Channel: "ch", Stall: 300 * time.Millisecond}))
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

	// A node that stops is noticed, and a new subscription reports what it did
	// not publish.
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

// A server whose disk is full refuses PING. Its pushes go on arriving, and new
// subscriptions are made.
func TestPushFromAServerWithAFullDisk(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1, redistest.WithArgs("--save", "3600 1")).Node(0)
	admin := node.Client()
	require.NoError(t, os.Mkdir(filepath.Join(node.Dir(), "dump.rdb"), 0o700))
	client := redis.NewClient(&redis.Options{Addr: node.Addr(), Protocol: 2})
	defer client.Close()
	var log events
	l := open(t, client, log.config(transport.Config{Channel: "ch", Stall: 300 * time.Millisecond}))
	subscribed := func(n int) {
		t.Helper()
		eventually(t, "subscribed", func() bool { return log.count("subscribed") == n })
	}
	subscribed(1)
	eventually(t, "refuses writes", func() bool {
		_ = admin.BgSave(t.Context()).Err() // one may be under way
		return strings.HasPrefix(fmt.Sprint(admin.Set(t.Context(), "key", "", 0).Err()), "MISCONF")
	})
	refused := func(more int64) {
		t.Helper()
		pings := func() int64 {
			info := admin.InfoMap(t.Context(), "commandstats").Item("Commandstats", "cmdstat_ping")
			_, after, _ := strings.Cut(info, "rejected_calls=")
			number, _, _ := strings.Cut(after, ",")
			n, err := strconv.ParseInt(number, 10, 64)
			require.NoError(t, err, info)
			return n
		}
		from := pings()
		eventually(t, "pings are refused", func() bool { return pings() >= from+more })
	}
	refused(1) // the counter exists
	refused(5)
	assert.Zero(t, log.count("push down"))
	require.NoError(t, admin.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err())
	subscribed(2)
	refused(5)
	require.NoError(t, admin.Publish(t.Context(), "ch", "x").Err())
	eventually(t, "pushed", func() bool { return log.count("push x") == 1 })
	assert.Equal(t, 1, log.count("push down"))
	assert.NoError(t, shut(l))
}

// connections is how many the link with that name has, as the server sees it.
func connections(t *testing.T, admin *redis.Client, name string) int {
	t.Helper()
	list, err := admin.ClientList(t.Context()).Result()
	require.NoError(t, err)
	return strings.Count(list, " name="+name+" ")
}

// A node that speaks RESP3 has one connection of a link, every other one two.
// The link follows when another server takes the place of the first.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	modern, old := redistest.Start(t, 1).Node(0),
		redistest.Start(t, 1, redistest.WithArgs("--rename-command", "HELLO", "")).Node(0)
	var at atomic.Value
	for name, c := range map[string]struct {
		protocol int
		want     map[*redistest.Server]int
	}{
		"two":          {2, map[*redistest.Server]int{modern: 2, old: 2}},
		"as it can be": {3, map[*redistest.Server]int{modern: 1, old: 2}},
	} {
		name = strings.ReplaceAll(name, " ", "-")
		client := redis.NewClient(&redis.Options{ClientName: name, Protocol: c.protocol,
			Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, at.Load().(*redistest.Server).Addr())
			}})
		t.Cleanup(func() { client.Close() })
		at.Store(modern)
		var log events
		l := open(t, client, log.config(transport.Config{Channel: name}))
		for _, node := range []*redistest.Server{modern, old, modern, old} {
			if at.Swap(node) != node {
				ups := log.count("up")
				l.Reconnect(errors.New("as the test wants it"))
				eventually(t, "up", func() bool { return log.count("up") > ups })
			}
			eventually(t, "subscribed", func() bool {
				return log.count("subscribed") > log.count("push down") &&
					connections(t, node.Client(), name) == c.want[node]
			})
			pushed := log.count("push x")
			require.NoError(t, node.Client().Publish(t.Context(), name, "x").Err())
			eventually(t, "pushed", func() bool { return log.count("push x") == pushed+1 })
			if c.protocol == 3 {
				assert.Equal(t, 4-c.want[node], l.State(time.Now()).Info.Protocol)
			}
		}
		assert.InDelta(t, log.count("subscribed"), log.count("push down")+1, 0)
	}
}

// Only servers that are known to execute commands on a subscribed connection
// get one of both kinds.
func TestOtherServersHaveTwoConnections(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]int{"redis": 3, "valkey": 3, "miniredis": 2} {
		addr := redistest.Serve(t, func(nc net.Conn) {
			rd := resp.NewReader(nc)
			for {
				v, err := rd.Read()
				if err != nil {
					return
				}
				answer := "+OK\r\n"
				if string(v[0].Str) == "HELLO" {
					answer = "%2\r\n+server\r\n+" + server + "\r\n+proto\r\n:3\r\n"
				}
				if _, err := nc.Write([]byte(answer)); err != nil {
					return
				}
			}
		})
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		l := open(t, client, transport.Config{})
		s := l.State(time.Now())
		require.NoError(t, s.Err)
		assert.Equal(t, want, s.Info.Protocol, server)
		require.NoError(t, shut(l))
	}
}

// Pushes come between answers at any time, also those that a command of this
// very connection has caused, and are mistaken for none.
func TestPushesAmongAnswers(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	var log events
	got := make(chan string, 4000)
	cfg := log.config(transport.Config{Channel: "ch"})
	cfg.Push = func(s string) { got <- s }
	l := open(t, node.Client(), cfg)
	eventually(t, "subscribed", func() bool { return log.count("subscribed") == 1 })
	require.Equal(t, 3, l.State(time.Now()).Info.Protocol)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; i < 1000; i++ {
			select {
			case <-stop:
				return
			default:
				node.Client().Publish(t.Context(), "ch", "other")
			}
		}
	})
	var calls []*call
	for i := range 1000 {
		own := newCall("EVAL", "redis.call('PUBLISH', 'ch', ARGV[1]) local r = {ARGV[1], {false, true, 7}} "+
			"redis.call('PUBLISH', 'ch', 'after') return r", "0", fmt.Sprint(i))
		calls = append(calls, own, newCall("HELLO"), newCall("ECHO", fmt.Sprint(i)))
	}
	for _, c := range calls {
		send(l, c)
	}
	for i := range 1000 {
		v, err := calls[3*i].wait(t)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i, " 0 1 7"), v)
		v, err = calls[3*i+1].wait(t)
		require.NoError(t, err)
		require.Contains(t, v, "server redis ")
		v, err = calls[3*i+2].wait(t)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), v)
	}
	close(stop)
	wg.Wait()
	for next := 0; next < 1000; {
		switch s := await(t, got); s {
		case "other", "after":
		default:
			require.Equal(t, fmt.Sprint(next), s)
			next++
		}
	}
}

// An answer to SUBSCRIBE that comes where another command's belongs, or the
// other way round, ends the connection. Each later answer would go to the wrong
// command, a vote for one claim to another.
func TestSubscriptionIsNotAnotherCommandsAnswer(t *testing.T) {
	t.Parallel()
	const subscribed = ">3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n"
	for name, c := range map[string]struct{ subscribe, a string }{
		"unasked":          {subscribed, subscribed + "+a\r\n"},
		"not as a push":    {"*" + subscribed[1:], "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nx\r\n+a\r\n"},
		"after the answer": {"+a\r\n", subscribed},
	} {
		t.Run(name, func(t *testing.T) {
			addr := redistest.Answer(t, func(words []string) string {
				switch words[0] {
				case "HELLO":
					return "%2\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n"
				case "SUBSCRIBE":
					return c.subscribe
				case "GET":
					if words[1] == "a" {
						return c.a
					}
					return "+b\r\n"
				}
				return "+OK\r\n"
			})
			client := redis.NewClient(&redis.Options{Addr: addr})
			defer client.Close()
			l := open(t, client, transport.Config{Channel: "ch"})
			a, b := newCall("GET", "a"), newCall("GET", "b")
			send(l, a)
			send(l, b)
			for want, c := range map[string]*call{"a": a, "b": b} {
				if v, err := c.wait(t); err == nil {
					assert.Equal(t, want, v)
				}
			}
			require.NoError(t, shut(l))
		})
	}
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

// A node that refuses pushes is asked again, on the same connection: an
// operator may allow the channel later.
func TestPushAllowedLater(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	admin := node.Client()
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">secret", "~*",
		"+@all", "resetchannels").Err())
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: node.Addr(), Username: "app",
			Password: "secret", Protocol: protocol})
		defer client.Close()
		var log events
		l := open(t, client, log.config(transport.Config{Channel: "ch"}))
		eventually(t, "push down", func() bool { return log.count("push down") == 1 })
		require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "app", "&ch").Err())
		eventually(t, "subscribed", func() bool { return log.count("subscribed") == 1 })
		require.NoError(t, admin.Publish(t.Context(), "ch", "x").Err())
		eventually(t, "pushed", func() bool { return log.count("push x") == 1 })
		assert.Zero(t, log.count("down"))
		assert.Equal(t, 1, log.count("push down"), "said once")
		require.NoError(t, shut(l))
		require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "app", "resetchannels").Err())
	}
}
