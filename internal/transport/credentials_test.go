package transport_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// A client with a Limiter is refused: nothing asks it.
func TestLimiterRefused(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Limiter: limiter{}})
	defer client.Close()
	_, err := transport.NewOrdered(client, transport.Config{})
	assert.ErrorContains(t, err, "Limiter")
}

type limiter struct{}

func (limiter) Allow() error       { return nil }
func (limiter) ReportResult(error) {}

// provider is a provider of credentials that changes them.
type provider struct {
	mu        sync.Mutex
	current   auth.Credentials
	listeners []auth.CredentialsListener
}

func (p *provider) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners = append(p.listeners, l)
	return p.current, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.listeners = slices.DeleteFunc(p.listeners, func(x auth.CredentialsListener) bool { return x == l })
		return nil
	}, nil
}

func (p *provider) change(user, password string) {
	p.mu.Lock()
	p.current = auth.NewBasicCredentials(user, password)
	now, all := p.current, slices.Clone(p.listeners)
	p.mu.Unlock()
	for _, l := range all {
		l.OnNext(now)
	}
}

// New credentials apply to the connections that are there: the commands go on,
// and the node may delete the user of before. Refused ones are reported, and
// change nothing.
func TestCredentialsChange(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			t.Parallel()
			node := redistest.Start(t, 1).Node(0)
			user := func(name string) {
				require.NoError(t, node.Client().Do(t.Context(), "ACL", "SETUSER", name, "on", ">"+name+"-1", "allkeys", "allchannels", "+@all").Err())
			}
			user("one")
			user("two")
			p := &provider{current: auth.NewBasicCredentials("one", "one-1")}
			o := &redis.Options{Addr: node.Addr(), StreamingCredentialsProvider: p, Protocol: protocol}
			var log events
			noticed := make(chan error, 10)
			cfg := log.config(transport.Config{Channel: "ch", Notice: func(err error) { noticed <- err }})
			client := redis.NewClient(o)
			t.Cleanup(func() { client.Close() })
			l := open(t, client, cfg)
			whoami := func() string {
				me, err := do(t, l, "ACL", "WHOAMI")
				require.NoError(t, err)
				return me
			}
			eventually(t, "subscribed", func() bool { return log.count("subscribed") > 0 })
			assert.Equal(t, "one", whoami())
			p.change("two", "wrong")
			assert.ErrorContains(t, await(t, noticed), "WRONGPASS")
			assert.Equal(t, "one", whoami())
			p.change("two", "two-1")
			assert.Equal(t, "two", whoami(), "in order with the commands")
			eventually(t, "no connection has the old user", func() bool {
				return !strings.Contains(node.Client().ClientList(t.Context()).Val(), "user=one ")
			})
			require.NoError(t, node.Client().Do(t.Context(), "ACL", "DELUSER", "one").Err())
			assert.Equal(t, "two", whoami())
			eventually(t, "pushes", func() bool {
				send(l, newCall("PUBLISH", "ch", "x"))
				return log.count("push x") > 0
			})
			assert.Equal(t, 1, log.count("up"), "the connection has not broken")
			require.NoError(t, shut(l))
			assert.Empty(t, p.listeners)
		})
	}
}

// A password that changes on the server is asked for at the next connection.
func TestPasswordChanges(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	set := func(password string) {
		require.NoError(t, node.Client().Do(t.Context(), "ACL", "SETUSER", "app", "reset", "on", ">"+password, "allkeys", "allchannels", "+@all").Err())
	}
	set("first")
	var mu sync.Mutex
	password := "first"
	client := redis.NewClient(&redis.Options{Addr: node.Addr(), CredentialsProviderContext: func(context.Context) (string, string, error) {
		mu.Lock()
		defer mu.Unlock()
		return "app", password, nil
	}})
	defer client.Close()
	var log events
	l := open(t, client, log.config(transport.Config{Channel: "ch"}))
	require.NoError(t, l.State(time.Now()).Err)
	set("second")
	mu.Lock()
	password = "second"
	mu.Unlock()
	require.NoError(t, node.Client().Do(t.Context(), "CLIENT", "KILL", "USER", "app").Err())
	eventually(t, "connected again", func() bool { return log.count("up") == 2 })
	_, err := do(t, l, "PING")
	require.NoError(t, err)
}
