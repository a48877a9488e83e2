package core

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// through returns a client of a server that reaches it by a proxy. Other
// servers that its options are used for are reached directly.
func through(t *testing.T, s *redistest.Server) (redis.UniversalClient, *proxy.Proxy) {
	t.Helper()
	p, err := proxy.Open(s.Addr())
	require.NoError(t, err)
	t.Cleanup(p.Close)
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == s.Addr() {
			addr = p.Addr()
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}})
	t.Cleanup(func() { _ = client.Close() })
	return client, p
}

// keepsOf returns what a server keeps of its set.
func keepsOf(t *testing.T, s *redistest.Server) protocol.NodeSet {
	t.Helper()
	has, ok := protocol.ParseNodeSet(s.Client().Get(t.Context(), script.SetKey(Defaults().Prefix)).Val())
	require.True(t, ok)
	return has
}

// A client sleeps while C is replaced by D, and C comes back with its data.
// Then A loses its data. The client wakes, parted from B and D. What B said
// before the exchange is no word for A: the client holds nothing while another
// one holds by B and D (internal/sim/testdata/exchange-stale-word.txt).
func TestNoPlaceByWordsOfBeforeTheLoss(t *testing.T) {
	t.Parallel()
	t.Run("FLUSHALL", func(t *testing.T) {
		t.Parallel()
		wakesAfterAnExchange(t, func(a *redistest.Server) error { return a.Client().FlushAll(t.Context()).Err() })
	})
	t.Run("a restart without files", func(t *testing.T) {
		t.Parallel()
		wakesAfterAnExchange(t, func(a *redistest.Server) error {
			if err := a.Kill(); err != nil {
				return err
			}
			if err := os.RemoveAll(filepath.Join(a.Dir(), "appendonlydir")); err != nil {
				return err
			}
			return a.Restart()
		})
	})
}

// A node without files is restarted. The members are asked and answer, so the
// log does not say that too few of them can.
func TestPlaceIsGivenBackWithoutAWarning(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	set := exchangeSettings()
	set.TTL, set.Guard, set.NodeTimeout = 20*time.Second, time.Minute, 5*time.Second // a machine that is late makes no member silent
	var mu sync.Mutex
	var log strings.Builder
	set.Logger = slog.New(slog.NewTextHandler(writer(func(b []byte) { mu.Lock(); log.Write(b); mu.Unlock() }), nil))
	q := opened(t, set, c.Node(0), c.Node(1), c.Node(2))
	require.NoError(t, q.BootstrapSet(within(t)))
	gets := func() bool {
		has := keepsOf(t, c.Node(0))
		return has.Phase == protocol.SetRecorded && q.nodes.at(0).err() == nil
	}
	require.NoError(t, c.Node(0).Restart())
	require.Eventually(t, gets, time.Minute, time.Millisecond)
	mu.Lock()
	assert.Contains(t, log.String(), "is given back its place")
	assert.NotContains(t, log.String(), errSetLost.why)
	mu.Unlock()
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func wakesAfterAnExchange(t *testing.T, loses func(*redistest.Server) error) {
	c := redistest.Start(t, 4, redistest.WithAOF("everysec"))
	a, b, left := c.Node(0), c.Node(1), c.Node(2)
	begins := func(set Settings, clients ...redis.UniversalClient) *Quorum {
		q, err := New(clients, set)
		require.NoError(t, err)
		t.Cleanup(func() { _ = q.Close(context.Background()) })
		require.NoError(t, q.Ready(within(t)))
		return q
	}
	toA, fromOther := through(t, a)
	other := begins(exchangeSettings(), toA, b.Client(), left.Client())
	require.NoError(t, other.BootstrapSet(within(t)))

	// A process that sleeps notices no time that passes. This one is awake, so
	// it must not notice that its connections hang.
	set := exchangeSettings()
	var judged atomic.Int32 // connections to A that have shown what it keeps
	toA, fromA := through(t, a)
	toB, fromB := through(t, b)
	set.Connect = func(client redis.UniversalClient, cfg transport.Config) (transport.Transport, error) {
		cfg.Stall = time.Hour
		if hello := cfg.Hello; client == toA {
			cfg.Hello = func(info transport.Info) ([]transport.Command, error) {
				defer judged.Add(1)
				return hello(info)
			}
		}
		return transport.NewOrdered(client, cfg)
	}
	sleeper := begins(set, toA, toB, left.Client())
	require.Eventually(t, func() bool {
		return sleeper.members.config.Load() != nil && sleeper.members.outside.Load() == 0
	}, time.Minute, time.Millisecond, "it has seen that each node is a member")

	fromA.Hold()
	fromB.Hold()
	require.NoError(t, left.Kill())
	require.NoError(t, other.Exchange(minute(t), Exchange{Add: c.URLs()[3:], Remove: c.URLs()[2:3]}))
	fromOther.Hold()
	hold := held(t, other, "n")
	require.NoError(t, loses(a))
	require.NoError(t, left.Restart())
	require.Eventually(t, func() bool { return sleeper.nodes.at(2).err() == nil }, time.Minute, time.Millisecond)
	require.Equal(t, []string{a.Addr(), b.Addr(), left.Addr()}, nodesOf(sleeper))

	// It wakes, parted from B and D.
	judged.Store(0)
	fromA.Release()
	spec, err := sleeper.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 1, Set: &sleeper.set})
	require.NoError(t, err)
	got := make(chan *Hold, 1)
	ctx, cancel := context.WithCancel(minute(t))
	defer cancel()
	go func() {
		h, err := sleeper.Acquire(ctx, spec, false, nil)
		assert.NoError(t, err)
		got <- h
	}()
	// The first connection finds A without its data, and the next ones find
	// that B does not say so again.
	require.Eventually(t, func() bool { return judged.Load() >= 5 || keepsOf(t, a).Config != nil }, time.Minute, time.Millisecond)
	if !assert.Nil(t, keepsOf(t, a).Config, "A has got a place in a set that is over") {
		h := <-got
		require.NotNil(t, h)
		assert.False(t, hold.Valid() && h.Valid(), "two holders")
		h.Release()
		return
	}
	assert.NotEmpty(t, keepsOf(t, a).Text, "it keeps a word, so the members were asked")
	assert.Empty(t, got)

	// B answers again. The client follows its set, A gets its place there, and
	// the lock passes on.
	fromB.Release()
	want := []string{a.Addr(), b.Addr(), c.Node(3).Addr()}
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, nodesOf(sleeper)) }, time.Minute, time.Millisecond)
	token := hold.Token(0)
	hold.Release()
	h := <-got
	require.NotNil(t, h)
	assert.Greater(t, h.Token(0), token)
	h.Release()
	require.Eventually(t, func() bool {
		has := keepsOf(t, a)
		return has.Stamp() == sleeper.members.config.Load().Stamp
	}, time.Minute, time.Millisecond)
}
