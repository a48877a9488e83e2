package transport_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// A connection goes to the master of its slot and follows it when the slot
// moves, for commands and for pushes. No command sees a redirection, and one
// that must arrive is kept until a server has the slot.
func TestFollowsTheSlot(t *testing.T) {
	t.Parallel()
	s := redistest.StartSharded(t, 2, false)
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			ctx := t.Context()
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: s.Addrs(), Protocol: protocol})
			defer client.Close()
			key := fmt.Sprintf("{t%d}", protocol)
			slot, err := s.Slot(ctx, key)
			require.NoError(t, err)
			from, err := s.Master(ctx, slot)
			require.NoError(t, err)
			to := s.Node(0)
			if to == from {
				to = s.Node(1)
			}
			var log events
			l := open(t, client, log.config(transport.Config{Slot: key, Channel: key, Stall: time.Second}))
			eventually(t, "subscribed", func() bool { return log.count("subscribed") == 1 })
			state := func() transport.State { return l.State(time.Now()) }
			assert.Equal(t, from.Addr(), state().Info.Addr)
			first := state().Info.RunID
			_, err = do(t, l, "SET", key, "x")
			require.NoError(t, err)

			move, err := s.BeginMove(ctx, slot, to)
			require.NoError(t, err)
			kept, other := lasting("APPEND", key+"1", "y"), newCall("GET", key+"2")
			send(l, kept, other)
			_, err = other.wait(t)
			assert.ErrorIs(t, err, transport.ErrBroken)
			assert.NotErrorAs(t, err, new(interface{ Code() string }), "the server's answer is not the command's")
			assert.Error(t, state().Err)
			require.NoError(t, move.End(ctx))
			_, err = kept.wait(t)
			require.NoError(t, err)
			eventually(t, "the other master", func() bool {
				s := state()
				return s.Err == nil && s.Info.RunID != first
			})
			assert.Equal(t, to.Addr(), state().Info.Addr)
			v, err := do(t, l, "MGET", key, key+"1")
			require.NoError(t, err)
			assert.Equal(t, "x y", v)
			eventually(t, "its pushes", func() bool {
				from.Client().Publish(ctx, key, "x") // a cluster passes it on to all its servers
				return log.count("push x") > 0
			})
			require.NoError(t, shut(l))
		})
	}
}

// lines are what go-redis writes to its logger.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Printf(_ context.Context, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf(format, args...))
}

// Where servers of a cluster are down, what go-redis knows of that is in the
// error of the node, and in no line of go-redis's own.
func TestClusterThatIsDownWritesNoLines(t *testing.T) {
	s := redistest.StartSharded(t, 3, false)
	var log lines
	redis.SetLogger(&log)
	defer logging.Enable()
	var failed atomic.Int64
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: s.Addrs(),
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				failed.Add(1)
			}
			return nc, err
		}})
	defer client.Close()
	l := open(t, client, transport.Config{Slot: "{t}", Stall: 100 * time.Millisecond})
	require.NoError(t, l.State(time.Now()).Err)
	for i := range s.Len() {
		require.NoError(t, s.Node(i).Kill())
	}
	eventually(t, "attempts", func() bool { return failed.Load() >= 20 })
	assert.ErrorContains(t, l.State(time.Now()).Err, "connection refused")
	require.NoError(t, shut(l))
	log.mu.Lock()
	defer log.mu.Unlock()
	assert.Empty(t, log.all)
}

// The application's code for a cluster hangs. Close ends all the same.
func TestCloseAsAClusterClientHangs(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"NewClient", "Dialer"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			hangs, may := make(chan struct{}, 100), make(chan struct{})
			defer close(may)
			hang := func(it string) {
				if it == what {
					hangs <- struct{}{}
					<-may
				}
			}
			client := redis.NewClusterClient(&redis.ClusterOptions{
				Addrs: []string{"127.0.0.1:1"},
				NewClient: func(o *redis.Options) *redis.Client {
					hang("NewClient")
					return redis.NewClient(o)
				},
				Dialer: func(context.Context, string, string) (net.Conn, error) {
					hang("Dialer")
					return nil, net.ErrClosed
				},
			})
			l, err := transport.NewOrdered(client, whole(transport.Config{Slot: "{t}", Stall: 100 * time.Millisecond}))
			require.NoError(t, err)
			<-hangs
			closed := make(chan error, 1)
			go func() { closed <- shut(l) }()
			select {
			case <-closed:
			case <-time.After(patience):
				t.Error("Close hangs")
			}
		})
	}
}

// A client of no cluster says so.
func TestSlotOfNoCluster(t *testing.T) {
	t.Parallel()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.Start(t, 1).Addrs()})
	defer client.Close()
	l := open(t, client, transport.Config{Slot: "{t}", Stall: time.Second})
	assert.ErrorContains(t, l.State(time.Now()).Err, "is not a Redis Cluster")
	require.NoError(t, shut(l))
}

// A client that makes those of its servers gives one what is refused.
func TestServersOptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := redistest.StartSharded(t, 1, false)
	for want, set := range map[string]func(o *redis.Options){
		"has a Limiter": func(o *redis.Options) { o.Limiter = limiter{} },
		"has an OnConnect": func(o *redis.Options) {
			o.OnConnect = func(context.Context, *redis.Conn) error { return nil }
		},
	} {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: s.Addrs(),
			NewClient: func(o *redis.Options) *redis.Client {
				set(o)
				return redis.NewClient(o)
			}})
		l := open(t, client, transport.Config{Slot: "{t}", Stall: time.Second})
		assert.ErrorContains(t, l.State(time.Now()).Err, want)
		require.NoError(t, shut(l))
		require.NoError(t, client.Close())
	}
}
