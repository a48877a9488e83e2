package transport_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
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

// named is what a Sentinel answers, as it is on the wire.
func named(t *testing.T, addr string) string {
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return string(resp.AppendCommand(nil, host, port))
}

// guards starts n Sentinels that answer as they are told, and counts the
// questions.
type guards struct {
	addrs []string
	say   []atomic.Value // string; empty: nothing at all
	asked atomic.Int32
}

func newGuards(t *testing.T, n int, say string) *guards {
	g := &guards{say: make([]atomic.Value, n)}
	for i := range n {
		g.say[i].Store(say)
		g.addrs = append(g.addrs, redistest.Answer(t, func(words []string) string {
			if words[0] != "SENTINEL" {
				return "+OK\r\n"
			}
			g.asked.Add(1)
			return g.say[i].Load().(string)
		}))
	}
	return g
}

func (g *guards) tell(say string, which ...int) {
	for _, i := range which {
		g.say[i].Store(say)
	}
}

func (g *guards) client(protocol int) *transport.SentinelClient {
	return transport.NewSentinelClient(&redis.FailoverOptions{MasterName: "m",
		SentinelAddrs: g.addrs, Protocol: protocol})
}

// A connection follows the master that a majority of the Sentinels names, also
// when the old one still answers, for commands and for pushes. One Sentinel
// changes nothing.
func TestFollowsTheMaster(t *testing.T) {
	t.Parallel()
	nodes := redistest.Start(t, 2)
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			t.Parallel()
			g := newGuards(t, 3, named(t, nodes.Node(0).Addr()))
			client := g.client(protocol)
			defer client.Close()
			var log events
			name := fmt.Sprint("ch", protocol)
			l := open(t, client, log.config(transport.Config{Channel: name, Stall: time.Second}))
			eventually(t, "subscribed", func() bool { return log.count("subscribed") == 1 })
			info := l.State(time.Now()).Info
			assert.Equal(t, nodes.Node(0).Addr(), info.Addr)
			g.tell(named(t, nodes.Node(1).Addr()), 0)
			before := g.asked.Load()
			eventually(t, "asked", func() bool { return g.asked.Load() >= before+6 })
			assert.Zero(t, log.count("down"), "the same master")
			g.tell(named(t, nodes.Node(1).Addr()), 1)
			eventually(t, "the other master", func() bool {
				s := l.State(time.Now())
				return s.Err == nil && s.Info.RunID != info.RunID
			})
			eventually(t, "its pushes", func() bool {
				nodes.Node(1).Client().Publish(t.Context(), name, "x")
				return log.count("push x") > 0
			})
			require.NoError(t, shut(l))
		})
	}
}

// A Sentinel that says nothing, and one that says nonsense, delay nothing: two
// of four would be no majority, three of five are.
func TestSentinelsThatSayNothing(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	good := named(t, node.Addr())
	for name, c := range map[string]struct {
		bad  string
		n    int
		says string
	}{
		"silent, 2 of 5":         {"", 5, ""},
		"silent, 2 of 4":         {"", 4, "has not answered"},
		"knows none, 2 of 5":     {"*-1\r\n", 5, ""},
		"knows none, 2 of 4":     {"*-1\r\n", 4, "knows no master of that name"},
		"knows none, 2 of 3":     {"*-1\r\n", 3, "the Sentinels know no master of that name"},
		"no address, 2 of 4":     {"*2\r\n$1\r\na\r\n$5\r\n99999\r\n", 4, "did not answer with a master's address"},
		"a forged line, 2 of 4":  {"*2\r\n$3\r\na\nb\r\n$1\r\n1\r\n", 4, "did not answer with a master's address"},
		"one word, 2 of 4":       {"$1\r\na\r\n", 4, "did not answer with a master's address"},
		"refuses, 2 of 4":        {"-NOPERM no\r\n", 4, "NOPERM this user has no permissions"},
		"no protocol, 2 of 4":    {"hello\r\n", 4, "malformed reply"},
		"not even one, 2 of two": {"*-1\r\n", 2, "the Sentinels know no master of that name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuards(t, c.n, good)
			g.tell(c.bad, 0, 1)
			client := g.client(3)
			defer client.Close()
			l := open(t, client, transport.Config{Stall: time.Second})
			if c.says == "" {
				assert.NoError(t, l.State(time.Now()).Err)
			} else {
				assert.ErrorContains(t, l.State(time.Now()).Err, c.says)
			}
			require.NoError(t, shut(l))
		})
	}
}

// A Sentinel that is listed in several spellings counts once: it lies, and the
// others are fewer than its spellings. The error says so.
func TestSentinelListedTwice(t *testing.T) {
	t.Parallel()
	var contacts atomic.Int32
	trap := redistest.Serve(t, func(net.Conn) { contacts.Add(1) })
	dialer := func(ctx context.Context, network, addr string) (net.Conn, error) { // to a proxy, for example
		return new(net.Dialer).DialContext(ctx, network, strings.Replace(addr, ".:", ":", 1))
	}
	for _, c := range []struct {
		spellings [2]string
		dialer    func(ctx context.Context, network, addr string) (net.Conn, error)
	}{
		{[2]string{"127.0.0.1", "localhost"}, nil},
		{[2]string{"localhost", "LocalHost"}, nil},
		{[2]string{"localhost", "LocalHost"}, dialer},
		{[2]string{"localhost", "localhost."}, dialer},
	} {
		g := newGuards(t, 2, named(t, trap))
		g.tell("*-1\r\n", 1)
		_, port, err := net.SplitHostPort(g.addrs[0])
		require.NoError(t, err)
		list := []string{g.addrs[1], c.spellings[0] + ":" + port, c.spellings[1] + ":" + port}
		client := transport.NewSentinelClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: list,
			Dialer: c.dialer, DialerRetries: 1})
		require.ErrorContains(t, client.Ping(t.Context()).Err(),
			"so it counts once: list each Sentinel once", c.spellings)
		assert.NoError(t, client.Close())
	}
	assert.Zero(t, contacts.Load())
}

// With most Sentinels gone the master that they named last is connected to
// again, as long as one of them still names it and none names another.
func TestSentinelsThatAreGone(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	g := newGuards(t, 3, named(t, node.Addr()))
	client := g.client(3)
	defer client.Close()
	var log events
	l := open(t, client, log.config(transport.Config{Stall: 200 * time.Millisecond}))
	require.NoError(t, l.State(time.Now()).Err)
	g.tell("", 0, 1)
	require.NoError(t, node.Client().ClientKillByFilter(t.Context(), "TYPE", "normal").Err())
	eventually(t, "connected again", func() bool { return log.count("up") == 2 })
	g.tell(named(t, "127.0.0.1:1"), 2)
	require.NoError(t, node.Client().ClientKillByFilter(t.Context(), "TYPE", "normal").Err())
	eventually(t, "no majority", func() bool {
		err := l.State(time.Now()).Err
		return err != nil && strings.Contains(err.Error(), "fewer than a majority of the 3 listed Sentinels")
	})
	require.NoError(t, shut(l))
}

// What the certificate of a server must name is in the options: a Sentinel
// chooses no name.
func TestNamesOfSentinelSets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ given, addr, want string }{
		{"s1", "s1:26379", "s1"},
		{"s1", "s2:26379", "s2"},
		{"s1", "s2:6379", "s2"},
		{"s1", "evil:6379", "s1"},
		{"", "s2:6379", "s2"},
		{"", "evil:6379", "s1"},
		{"redis.internal", "s1:26379", "redis.internal"},
		{"redis.internal", "evil:6379", "redis.internal"},
	} {
		o := &redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"s1:26379", "s2:26379"},
			TLSConfig: &tls.Config{ServerName: c.given}}
		assert.Equal(t, c.want, transport.CertificateName(o, c.addr), "%+v", c)
		assert.Equal(t, c.given, o.TLSConfig.ServerName)
	}
}
