package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// within is a context that ends with the test, or after a time that no busy
// machine needs.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A claim whose settings were made apart from the Quorum's counts on the set of
// that Quorum, too. Without that each request is refused, and each node is
// connected to again without end.
func TestSettingsMadeApart(t *testing.T) {
	t.Parallel()
	q := idle(t, redistest.Start(t, 1))
	require.NoError(t, q.Bootstrap(within(t)))
	own := Defaults()
	own.TTL, own.Guard = time.Minute, 3*time.Minute
	spec, err := q.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 1, Set: &own})
	require.NoError(t, err)
	h, err := q.Acquire(within(t), spec, false, nil)
	require.NoError(t, err)
	h.Release()
}

// A set is recorded while a client connects, after it has read which set each
// node is of. It learns the set, and connects again: no error says that
// anything is wrong with a key.
func TestSetIsRecordedWhileAClientConnects(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	first := idle(t, c)
	var clients []redis.UniversalClient
	for i := range c.Len() {
		clients = append(clients, c.Node(i).Client())
	}
	set := first.set
	var once sync.Once
	var met sync.WaitGroup
	met.Add(len(clients))
	set.Connect = func(client redis.UniversalClient, cfg transport.Config) (transport.Transport, error) {
		var here sync.Once
		hello, failed := cfg.Hello, cfg.HelloFailed
		cfg.Hello = func(info transport.Info) ([]transport.Command, error) {
			here.Do(func() { // the answers of the probe are here
				met.Done()
				met.Wait()
				once.Do(func() { assert.NoError(t, first.Bootstrap(within(t))) })
			})
			return hello(info)
		}
		cfg.HelloFailed = func(err error) {
			assert.ErrorContains(t, err, "OTHERSET")
			failed(err)
		}
		return transport.NewOrdered(client, cfg)
	}
	q, err := New(clients, set)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close(context.Background())) })
	require.NoError(t, q.Ready(within(t)))
	spec, err := q.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 1, Set: &q.set})
	require.NoError(t, err)
	h, err := q.Acquire(within(t), spec, false, nil)
	require.NoError(t, err)
	h.Release()
}

// A client records the set while its own claims ask the nodes all the time.
// Each node refuses the requests that name no set, and is connected to again:
// Bootstrap goes on with what the nodes have accepted.
func TestSetIsRecordedByABusyClient(t *testing.T) {
	t.Parallel()
	for range 10 {
		c := redistest.Start(t, 3)
		set := Defaults()
		set.NodeTimeout = 2 * time.Second // Bootstrap may take ten times that
		q := declared(t, c, set)
		var all sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for _, name := range []string{"a", "b", "c", "d"} {
			spec, err := q.NewSpec(Spec{Name: name, Weight: 1, Capacity: 1, Set: &q.set})
			require.NoError(t, err)
			all.Go(func() {
				for ctx.Err() == nil {
					if h, err := q.Acquire(ctx, spec, false, nil); err == nil {
						h.Release()
					}
				}
			})
		}
		err := q.Bootstrap(within(t))
		cancel()
		all.Wait()
		require.NoError(t, err)
	}
}

// An address of the list leads to a server with another member's data from some
// moment on, and a third member is away. What the first one said counts no
// more: the hold ends at once, long before its leases do.
func TestAddressThatLeadsToAnotherIdentity(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	set := Defaults()
	set.TTL, set.Guard, set.Retention = 10*time.Minute, 25*time.Minute, time.Hour
	set.Logger = slog.New(slog.DiscardHandler)
	require.NoError(t, opened(t, set, c.Node(0), c.Node(1), c.Node(2)).Bootstrap(within(t)))
	var moved atomic.Bool
	var clients []redis.UniversalClient
	for i := range 3 {
		clients = append(clients, redis.NewClient(&redis.Options{Addr: c.Node(i).Addr(), MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			switch {
			case i == 2:
				return nil, errors.New("cut off")
			case i == 0 && moved.Load():
				addr = c.Node(3).Addr()
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}}))
		t.Cleanup(func() { _ = clients[i].Close() })
	}
	q, err := New(clients, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	data := c.Node(1).Client().Get(t.Context(), script.SetKey(set.Prefix)).Val()
	require.NoError(t, c.Node(3).Client().Set(t.Context(), script.SetKey(set.Prefix), data, 0).Err())
	mine := held(t, q, "first")
	moved.Store(true)
	q.nodes.at(0).link.Reconnect(errors.New("as the test wants it"))
	require.Eventually(t, func() bool { return !mine.Valid() }, time.Minute, time.Millisecond)
	mine.Release()
}

// The servers of a set have changed their addresses with each other. A client
// that starts then uses each of them, once it has seen where they are.
func TestServersThatChangedAddresses(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	set := Defaults()
	set.Logger = slog.New(slog.DiscardHandler)
	require.NoError(t, opened(t, set, c.Node(0), c.Node(1), c.Node(2)).Bootstrap(within(t)))
	var clients []redis.UniversalClient
	for i := range 3 {
		clients = append(clients, redis.NewClient(&redis.Options{Addr: c.Node(i).Addr(), MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, c.Node((i+1)%3).Addr())
		}}))
		t.Cleanup(func() { _ = clients[i].Close() })
	}
	q, err := New(clients, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	require.NoError(t, q.Ready(within(t)))
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(q.nodes.all(), func(n *node) bool { return n.err() != nil })
	}, time.Minute, time.Millisecond)
	held(t, q, "first").Release()
}

// A set that another version of the library has recorded is refused with an
// error that says so.
func TestSetOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	recorded := "0 0 c id 1.19a0000000000000001 2 whatever a later version writes"
	require.NoError(t, c.Node(0).Client().Set(t.Context(), script.SetKey(Defaults().Prefix), recorded, 0).Err())
	q, err := New([]redis.UniversalClient{c.Node(0).Client()}, exchangeSettings())
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		f, ok := errors.AsType[*Failure](q.Ready(ctx))
		return ok && strings.Contains(fmt.Sprint(f.Nodes[0].Err), "version 2 of the keys, and this program has version 1")
	}, time.Minute, time.Millisecond)
	assert.Equal(t, recorded, c.Node(0).Client().Get(t.Context(), script.SetKey(Defaults().Prefix)).Val(), "it is left as it was")
}
