package e2e_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

func TestBadNames(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(long))
	for _, bad := range []struct{ what, name, says string }{
		{"empty", "", "the name is empty"},
		{"braces", "a{b}c", "choose another separator"},
		{"an opening brace", "a{", "choose another separator"},
		{"64 KiB", strings.Repeat("x", 64<<10), "at most 1024 are allowed: hash it"},
		{"one byte too long", strings.Repeat("x", 1025), "at most 1024 are allowed: hash it"},
	} {
		t.Run(bad.what, func(t *testing.T) {
			m := mutex.New(q, bad.name)
			for _, err := range []error{
				m.LockContext(t.Context()), m.TryLockContext(t.Context()),
				m.Do(t.Context(), func(context.Context) error { t.Error("called"); return nil }),
			} {
				require.ErrorIs(t, err, quorate.ErrInvalid)
				assert.ErrorContains(t, err, bad.says)
				assert.Less(t, len(err.Error()), 1024, "a message and no dump")
			}
			assert.False(t, m.TryLock())
			assert.Panics(t, m.Lock)
		})
	}
	for _, name := range []string{"x", strings.Repeat("x", 1024), "ein Schloß \n\x00 *?[a]:é"} {
		m := mutex.New(q, name)
		require.NoError(t, m.LockContext(t.Context()), "%q", name)
		assert.False(t, mutex.New(q, name).TryLock())
		require.NoError(t, m.UnlockContext(t.Context()))
	}
	e2e.Clean(t, c)
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	clients := []redis.UniversalClient{c.Node(0).Client()}
	q := e2e.Open(t, c)
	for _, bad := range []struct {
		what string
		opt  quorate.Option
		says []string
	}{
		{"ttl 0", quorate.WithTTL(0), []string{"WithTTL(0s)", "choose seconds"}},
		{"ttl negative", quorate.WithTTL(-time.Second), []string{"WithTTL(-1s)", "choose seconds"}},
		{"ttl with microseconds", quorate.WithTTL(1234567 * time.Microsecond),
			[]string{"WithTTL(1.234567s)", "whole number"}},
		{"ttl of days", quorate.WithTTL(48 * time.Hour), []string{"WithTTL(48h0m0s)", "at most 24h"}},
		{"ttl too long for the guard", quorate.WithTTL(9 * time.Second),
			[]string{"WithGuard(20s)", "choose WithGuard(22s) or more", "shorter WithTTL"}},
		{"guard too short", quorate.WithGuard(time.Second),
			[]string{"WithGuard(1s)", "choose WithGuard(20s) or more"}},
		{"skew negative", quorate.WithSkew(-1), []string{"WithSkew(-1ns)"}},
		{"node timeout 0", quorate.WithNodeTimeout(0), []string{"WithNodeTimeout(0s)", "must be positive"}},
		{"node timeout too long", quorate.WithNodeTimeout(3 * time.Second),
			[]string{"WithNodeTimeout(3s)", "choose at most 2s"}},
		{"retention too short", quorate.WithRetention(time.Second),
			[]string{"WithRetention(1s)", "below the guard time 20s"}},
		{"max hold negative", quorate.WithMaxHold(-1), []string{"WithMaxHold(-1ns)", "0 means no limit"}},
		{"linger negative", quorate.WithLinger(-1), []string{"WithLinger(-1ns)", "0 means none"}},
		{"prefix empty", quorate.WithPrefix(""), []string{`WithPrefix("")`}},
		{"prefix with a brace", quorate.WithPrefix("a{"), []string{`WithPrefix("a{")`}},
	} {
		t.Run(bad.what, func(t *testing.T) {
			_, err := quorate.New(clients, bad.opt)
			require.ErrorIs(t, err, quorate.ErrInvalid)
			_, cerr := quorate.Connect(t.Context(), c.URLs(), bad.opt)
			require.ErrorIs(t, cerr, quorate.ErrInvalid)
			for _, text := range bad.says {
				assert.ErrorContains(t, err, text)
				assert.ErrorContains(t, cerr, text)
			}
			if opt, ok := bad.opt.(quorate.LockOption); ok {
				assert.Panics(t, func() { mutex.New(q, "m", opt) })
			}
		})
	}
	left, err := e2e.Leftovers(t.Context(), c.Node(0))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestBadNodes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	one, two := c.Node(0).Client(), c.Node(1).Client()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": c.Node(2).Addr()}})
	defer func() { _ = ring.Close() }()
	again := redis.NewClient(&redis.Options{Addr: c.Node(0).Addr()})
	defer func() { _ = again.Close() }()
	var typedNil *redis.Client
	for _, bad := range []struct {
		what  string
		nodes []redis.UniversalClient
		says  string
	}{
		{"none", nil, "no nodes; pass 1, 3 or 5"},
		{"nil", []redis.UniversalClient{one, nil, two}, "node 2 is"},
		{"typed nil", []redis.UniversalClient{one, two, typedNil}, "node 3 is nil"},
		{"the same client twice", []redis.UniversalClient{one, two, one},
			"nodes 1 and 3 are the same server, " + c.Node(0).Addr()},
		{"the same server twice", []redis.UniversalClient{one, two, again}, "list each server once"},
		{"one database of node 3, and another of the others", []redis.UniversalClient{one, two,
			e2e.Client(t, c.Node(2).URL()+"/1")}, "node 1 (" + c.Node(0).Addr() + ") uses database 0, but node 3 (" +
			c.Node(2).Addr() + ") uses database 1; use the same"},
		{"not a single server", []redis.UniversalClient{one, two, ring}, "pass a *redis.Client (one master)"},
	} {
		t.Run(bad.what, func(t *testing.T) {
			_, err := quorate.New(bad.nodes)
			require.ErrorIs(t, err, quorate.ErrInvalid)
			assert.ErrorContains(t, err, bad.says)
		})
	}
	for _, bad := range []struct {
		urls []string
		says string
	}{
		{nil, "no nodes; pass 1, 3 or 5"},
		{[]string{c.URLs()[0], c.URLs()[0]}, "are the same server"},
		{[]string{c.URLs()[0], "http://example.com"}, "node 2: the URL must begin with"},
		{[]string{""}, "node 1 is empty"},
		{[]string{c.URLs()[0] + "/2", c.URLs()[1] + "?db=2", c.URLs()[2]}, "uses database 2, but node 3"},
	} {
		_, err := quorate.Connect(t.Context(), bad.urls)
		require.ErrorIs(t, err, quorate.ErrInvalid, "%q", bad.urls)
		assert.ErrorContains(t, err, bad.says)
	}
}

// Connect accepts what the command's --nodes accepts.
func TestConnectForms(t *testing.T) {
	dir, err := os.MkdirTemp("", "q") // a socket's path must be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	c := redistest.Start(t, 2)
	local := redistest.Start(t, 1, redistest.WithArgs("--unixsocket", socket))
	q, err := quorate.Connect(t.Context(),
		[]string{c.Node(0).Addr() + " ,\n\tredis://" + c.Node(1).Addr() + "\n", "unix://" + socket})
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	require.NoError(t, q.Bootstrap(t.Context()))
	require.NoError(t, local.Node(0).Stop()) // so the other two have been found
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(t.Context()))
	require.NoError(t, m.UnlockContext(t.Context()))
	require.NoError(t, local.Node(0).Cont())
	require.NoError(t, c.Node(0).Stop()) // and so has the third
	require.NoError(t, m.LockContext(t.Context()))
	require.NoError(t, m.UnlockContext(t.Context()))
	require.NoError(t, c.Node(0).Cont())
}

func TestEvenNumberOfNodes(t *testing.T) {
	t.Parallel()
	for n, lines := range map[int]int{1: 0, 2: 1, 3: 0, 4: 1} {
		c := redistest.Start(t, n)
		var log e2e.Log
		q := e2e.Open(t, c, e2e.Timing(2*time.Second), log.Option())
		m := mutex.New(q, "m")
		require.NoError(t, m.LockContext(t.Context()))
		// On a busy machine the first of two calls of Bootstrap has recorded
		// it.
		assert.Len(t, log.Lines("level=INFO"), lines+len(log.Lines("already recorded")), "%d nodes", n)
		assert.Len(t, log.Lines("the last one adds no fault tolerance"), lines, "%d nodes", n)
		m.Unlock()
		for i := range (n - 1) / 2 {
			require.NoError(t, c.Node(i).Stop())
		}
		require.NoError(t, m.LockContext(t.Context()), "%d nodes bear that %d are away", n, (n-1)/2)
		require.NoError(t, m.UnlockContext(t.Context()))
		if n%2 == 0 {
			require.NoError(t, c.Node(n-1).Stop())
			assert.ErrorIs(t, m.TryLockContext(t.Context()), quorate.ErrNoQuorum, "and no more")
		}
	}
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3, redistest.WithPassword("right"))
	for what, user := range map[string]*url.Userinfo{"WRONGPASS": url.UserPassword("", "wrong"), "NOAUTH": nil} {
		t.Run(what, func(t *testing.T) {
			var urls []string
			for _, a := range c.Addrs() {
				urls = append(urls, (&url.URL{Scheme: "redis", User: user, Host: a}).String())
			}
			check := func(err error) {
				require.ErrorIs(t, err, quorate.ErrNoQuorum)
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				var e *quorate.Error
				require.ErrorAs(t, err, &e)
				require.Len(t, e.Nodes, 3)
				refused := slices.DeleteFunc(slices.Clone(e.Nodes),
					func(n quorate.NodeError) bool { return !strings.Contains(n.Err.Error(), what) })
				assert.GreaterOrEqual(t, len(refused), 2, "%v", err) // the third may still be connecting
				assert.ErrorContains(t, err, refused[0].Node+" ")
				assert.ErrorContains(t, err, what)
			}
			ctx := deadline(t)
			_, err := quorate.Connect(ctx, urls, e2e.Timing(time.Second), quorate.WithLogger(nil))
			check(err)

			var log e2e.Log
			m := mutex.New(e2e.OpenAt(t, urls, e2e.Timing(time.Second), log.Option()), "m")
			check(m.LockContext(ctx))
			check(m.TryLockContext(ctx))
			assert.True(t, e2e.Eventually(func() bool { return len(log.Lines(what)) > 0 }))
		})
	}
	e2e.Clean(t, c)

	// One that refuses is borne like one that is away, once the set is
	// recorded.
	require.NoError(t, e2e.Declare(c.URLs()))
	urls := c.URLs()
	urls[0] = "redis://:wrong@" + c.Node(0).Addr()
	q, err := quorate.Connect(deadline(t), urls,
		e2e.Guarded(time.Second, 3*time.Second), quorate.WithLogger(nil))
	require.NoError(t, err)
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
	_ = q.Close() // that node has not confirmed the leaves, which is an error here
}

func TestConnectWithoutServers(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	for i := range 2 {
		require.NoError(t, c.Node(i).Kill())
	}
	var err error
	require.True(t, e2e.Eventually(func() bool { // the node that runs may not have answered in time
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err = quorate.Connect(ctx, c.URLs(), e2e.Timing(4*time.Second), quorate.WithLogger(nil))
		return err == nil || strings.Contains(err.Error(), c.Node(2).Addr()+" has recorded no set of nodes")
	}))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	for i := range 2 {
		assert.ErrorContains(t, err, c.Node(i).Addr())
	}
	assert.ErrorContains(t, err, c.Node(2).Addr()+" has recorded no set of nodes")
	for i := range 2 {
		require.NoError(t, c.Node(i).Restart())
	}
	q, err := quorate.Connect(deadline(t), c.URLs(), e2e.Timing(time.Second), quorate.WithLogger(nil))
	require.NoError(t, err)
	require.NoError(t, q.Close())
}

// deadline is a context for what must be over soon.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), e2e.Patience)
	t.Cleanup(cancel)
	return ctx
}

func TestKeyOfAnotherTypeInTheWay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	hash := func(c *redis.Client, k string) error { return c.HSet(ctx, k, "f", "v").Err() }
	list := func(c *redis.Client, k string) error { return c.RPush(ctx, k, "v").Err() }
	text := func(c *redis.Client, k string) error { return c.Set(ctx, k, "not ours", 0).Err() }
	for _, in := range []struct {
		what, key string
		put       func(c *redis.Client, key string) error
		contended bool // matters only to a claim that has to queue
	}{
		{"the plain key is a hash", "m", hash, false},
		{"the state is a list", "quorate:{m}", list, false},
		{"the state is some other text", "quorate:{m}", text, false},
		{"the queue is text", "quorate:{m}:q", text, true},
		{"the claims are a list", "quorate:{m}:c", list, true},
	} {
		t.Run(in.what, func(t *testing.T) {
			c := redistest.Start(t, 3)
			q := e2e.Open(t, c, e2e.Timing(long))
			m, holder := mutex.New(q, "m"), mutex.New(q, "m")
			put := func(node int) {
				require.NoError(t, in.put(c.Node(node).Client(), in.key))
			}
			put(0)
			require.NoError(t, m.LockContext(deadline(t)), "one server with such a key is borne")
			require.NoError(t, m.UnlockContext(deadline(t)))
			require.NoError(t, c.Node(0).Client().Del(ctx, in.key).Err())
			if in.contended {
				holder.Lock() // which a majority suffices for; all shall have it before they are compared
				require.True(t, e2e.Eventually(func() bool {
					return len(leftovers(t, c.Node(0))) == 2 && len(leftovers(t, c.Node(1))) == 2
				}))
			}
			before := [][]string{leftovers(t, c.Node(0)), leftovers(t, c.Node(1))}
			for i := range 2 {
				require.NoError(t, c.Node(i).Client().Del(ctx, in.key).Err()) // the fence, if that is the one
				put(i)
			}
			for _, err := range []error{m.LockContext(deadline(t)), m.TryLockContext(deadline(t))} {
				require.ErrorIs(t, err, quorate.ErrNoQuorum)
				require.NotErrorIs(t, err, context.DeadlineExceeded, "waiting cannot help")
				var e *quorate.Error
				require.ErrorAs(t, err, &e)
				for i := range 2 {
					assert.Equal(t, c.Node(i).Addr(), e.Nodes[i].Node)
					assert.ErrorContains(t, e.Nodes[i].Err, "WRONGTYPE")
					assert.ErrorContains(t, e.Nodes[i].Err, in.key)
				}
			}
			for i := range 2 {
				require.NoError(t, c.Node(i).Client().Del(ctx, in.key).Err())
				assert.Equal(t, before[i], leftovers(t, c.Node(i)), "nothing has been added")
			}
			if in.contended {
				holder.Unlock()
			}
			require.NoError(t, m.LockContext(deadline(t)), "it is well when the key has gone")
			m.Unlock()
			e2e.Clean(t, c)
		})
	}
}
