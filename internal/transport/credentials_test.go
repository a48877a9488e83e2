package transport_test

import (
	"cmp"
	"context"
	"net"
	"runtime"
	"slices"
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

// A client with a Limiter or an OnConnect is refused: nothing calls them.
func TestOptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	onConnect := func(context.Context, *redis.Conn) error { return nil }
	for want, client := range map[string]redis.UniversalClient{
		"has a Limiter":    redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Limiter: limiter{}}),
		"has an OnConnect": redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", OnConnect: onConnect}),
		"an OnConnect": redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"},
			OnConnect: onConnect}),
	} {
		_, err := transport.NewOrdered(client, whole(transport.Config{}))
		assert.ErrorContains(t, err, want)
		assert.NoError(t, client.Close())
	}
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

// What a streaming provider says counts from the next connection on. It comes
// at once where the node ends those of before, and nothing is left subscribed.
func TestCredentialsChange(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	for _, name := range []string{"one", "two"} {
		require.NoError(t, node.Client().Do(t.Context(), "ACL", "SETUSER", name, "on", ">"+name+"-1", "allkeys",
			"allchannels", "+@all").Err())
	}
	p := &provider{current: auth.NewBasicCredentials("one", "one-1")}
	client := redis.NewClient(&redis.Options{Addr: node.Addr(), StreamingCredentialsProvider: p})
	t.Cleanup(func() { client.Close() })
	var log events
	l := open(t, client, log.config(transport.Config{Channel: "ch"}))
	whoami := func() string {
		me, err := do(t, l, "ACL", "WHOAMI")
		require.NoError(t, err)
		return me
	}
	assert.Equal(t, "one", whoami())
	p.change("two", "two-1")
	assert.Equal(t, "one", whoami(), "the connection goes on")
	require.NoError(t, node.Client().Do(t.Context(), "ACL", "DELUSER", "one").Err())
	eventually(t, "connected again", func() bool { return log.count("up") == 2 })
	assert.Equal(t, "two", whoami())
	require.NoError(t, shut(l))
	assert.Empty(t, p.listeners)
}

// A Dialer or a provider of credentials that ends its goroutine has failed, and
// no goroutine waits for it.
func TestGoroutineThatIsEnded(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	for name, o := range map[string]*redis.Options{
		"Dialer": {Dialer: func(context.Context, string, string) (net.Conn, error) {
			runtime.Goexit()
			return nil, nil
		}},
		"provider": {CredentialsProvider: func() (user, password string) {
			runtime.Goexit()
			return "", ""
		}},
	} {
		o.Addr = node.Addr()
		client := redis.NewClient(o)
		t.Cleanup(func() { client.Close() })
		var first error
		l := open(t, client, transport.Config{Down: func(err error) { first = cmp.Or(first, err) }})
		require.NoError(t, shut(l))
		assert.ErrorContains(t, first, "called runtime.Goexit", name)
	}
}

// A password that changes on the server is asked for at the next connection.
func TestPasswordChanges(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	set := func(password string) {
		require.NoError(t, node.Client().Do(t.Context(), "ACL", "SETUSER", "app", "reset", "on", ">"+password,
			"allkeys", "allchannels", "+@all").Err())
	}
	set("first")
	var mu sync.Mutex
	password := "first"
	client := redis.NewClient(&redis.Options{Addr: node.Addr(),
		CredentialsProviderContext: func(context.Context) (string, string, error) {
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
