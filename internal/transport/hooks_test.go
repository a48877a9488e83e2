package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
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

// spy is a hook that records what it sees, and interferes if it is to.
type spy struct {
	mu  sync.Mutex
	log []string

	dial    func(ctx context.Context, next func(context.Context) (net.Conn, error)) (net.Conn, error)
	process func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error
}

func (s *spy) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (s *spy) seen(line string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.log {
		if l == line {
			n++
		}
	}
	return n
}

func (s *spy) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		dial := func(ctx context.Context) (net.Conn, error) { return next(ctx, network, addr) }
		s.add("dial")
		if s.dial != nil {
			return s.dial(ctx, dial)
		}
		return dial(ctx)
	}
}

func (s *spy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.add("begin %s", cmd.Name())
		err := error(nil)
		if s.process != nil {
			err = s.process(ctx, cmd, next)
		} else {
			err = next(ctx, cmd)
		}
		if cmd.Name() != "hello" {
			s.add("end %v: %v", cmd.Args(), err)
		}
		return err
	}
}

func (s *spy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			s.add("pipelined %v", cmd.Args())
		}
		return next(ctx, cmds)
	}
}

// hooked returns a client with the hook, and a link made of it.
func hooked(t *testing.T, o *redis.Options, s *spy, cfg transport.Config) (*redis.Client, *transport.Ordered) {
	t.Helper()
	client := redis.NewClient(o)
	t.Cleanup(func() { client.Close() })
	client.AddHook(s)
	return client, open(t, client, cfg)
}

// Dial hooks run for each connection, also for the next one. Process hooks see
// the login, and each command with its arguments and its outcome.
func TestHooksSee(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1, redistest.WithPassword("secret")).Node(0)
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			t.Parallel()
			var s spy
			subscribed := make(chan struct{}, 10)
			client, l := hooked(t, &redis.Options{Addr: node.Addr(), Password: "secret", DB: 2, Protocol: protocol}, &s,
				transport.Config{Channel: "ch", Subscribed: func() { subscribed <- struct{}{} }})
			require.NoError(t, l.State(time.Now()).Err)
			await(t, subscribed)
			dials := s.seen("dial")
			assert.Positive(t, dials)
			assert.Equal(t, dials, s.seen("end [ping]: <nil>"))
			assert.Equal(t, dials, s.seen("begin hello"))
			assert.Equal(t, dials, s.seen("pipelined [select 2]"))

			_, err := do(t, l, "SET", "key", "value")
			require.NoError(t, err)
			_, err = do(t, l, "NONE", "x")
			require.Error(t, err)
			eventually(t, "both seen", func() bool {
				return s.seen("end [SET key value]: <nil>") == 1 && s.seen("end [NONE x]: "+err.Error()) == 1
			})

			l.Reconnect(errors.New("as the test wants it"))
			eventually(t, "dialed again", func() bool { return s.seen("dial") > dials && l.State(time.Now()).Err == nil })
			require.NoError(t, client.Ping(t.Context()).Err(), "the client's own connections")
			require.NoError(t, shut(l))
			require.NoError(t, client.Ping(t.Context()).Err(), "the client outlives the link")
			s.mu.Lock()
			defer s.mu.Unlock()
			assert.NotContains(t, strings.Join(s.log, "\n"), "secret")
		})
	}
}

// A hook that refuses a connection is obeyed, and named as the cause.
func TestHooksRefuse(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	denied := errors.New("not today")
	for name, c := range map[string]struct {
		spy  *spy
		want string
	}{
		"dial": {&spy{dial: func(context.Context, func(context.Context) (net.Conn, error)) (net.Conn, error) { return nil, denied }}, "not today"},
		"dial, afterwards": {&spy{dial: func(ctx context.Context, next func(context.Context) (net.Conn, error)) (net.Conn, error) {
			nc, err := next(ctx)
			if err == nil {
				nc.Close()
			}
			return nil, denied
		}}, "not today"},
		"process": {&spy{process: func(context.Context, redis.Cmder, redis.ProcessHook) error { return denied }}, "not today"},
		"process, afterwards": {&spy{process: func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
			next(ctx, cmd)
			return denied
		}}, "not today"},
		"process, in silence": {&spy{process: func(context.Context, redis.Cmder, redis.ProcessHook) error { return nil }}, "keeps the PING"},
		"its own dial": {&spy{dial: func(context.Context, func(context.Context) (net.Conn, error)) (net.Conn, error) {
			return net.Dial("tcp", node.Addr())
		}}, "let Options.Dialer connect"},
		"no context": {&spy{dial: func(_ context.Context, next func(context.Context) (net.Conn, error)) (net.Conn, error) {
			return next(context.Background())
		}}, "let Options.Dialer connect"},
		"a wrapped connection": {&spy{dial: func(ctx context.Context, next func(context.Context) (net.Conn, error)) (net.Conn, error) {
			nc, err := next(ctx)
			return &upper{nc}, err
		}}, "return it wrapped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, l := hooked(t, &redis.Options{Addr: node.Addr()}, c.spy, transport.Config{Channel: "ch"})
			assert.ErrorContains(t, l.State(time.Now()).Err, c.want)
			require.NoError(t, shut(l))
		})
	}
}

// upper is a connection around another one.
type upper struct{ net.Conn }

func (u *upper) Write(p []byte) (int, error) { return u.Conn.Write(p) }

// A hook that hangs delays no command, and Close does not wait for it for good.
// What it does not see is reported.
func TestHookHangs(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	hang := make(chan struct{})
	s := &spy{process: func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if cmd.Name() == "get" {
			<-hang
			return errors.New("and prevents nothing")
		}
		return next(ctx, cmd)
	}}
	noticed := make(chan error, 10)
	_, l := hooked(t, &redis.Options{Addr: node.Addr()}, s, transport.Config{Notice: func(err error) { noticed <- err }})
	for range 1500 {
		_, err := do(t, l, "GET", "key")
		require.NoError(t, err)
	}
	assert.ErrorContains(t, await(t, noticed), "too slow")
	assert.Empty(t, noticed, "it is said once")
	shut(l)
	close(hang)
	eventually(t, "the hooks have ended", func() bool { return s.seen("end [GET key]: and prevents nothing") == 1024 })
}

// A hook that ends its goroutine, as t.FailNow does, gives its place back. So
// the hooks go on seeing commands.
func TestHookExits(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	seen := make(chan struct{}, 1)
	s := &spy{process: func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if cmd.Name() == "get" {
			seen <- struct{}{}
			runtime.Goexit()
		}
		return next(ctx, cmd)
	}}
	_, l := hooked(t, &redis.Options{Addr: node.Addr()}, s, transport.Config{Notice: func(error) {}})
	for range 1100 {
		_, err := do(t, l, "GET", "key")
		require.NoError(t, err)
		await(t, seen)
	}
}

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
		for _, hooks := range []bool{false, true} {
			t.Run(fmt.Sprintf("RESP%d, hooks %v", protocol, hooks), func(t *testing.T) {
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
				var l *transport.Ordered
				var s spy
				if hooks {
					_, l = hooked(t, o, &s, cfg)
				} else {
					client := redis.NewClient(o)
					t.Cleanup(func() { client.Close() })
					l = open(t, client, cfg)
				}
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
				s.mu.Lock()
				defer s.mu.Unlock()
				assert.NotContains(t, strings.Join(s.log, "\n"), "two-1")
			})
		}
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
