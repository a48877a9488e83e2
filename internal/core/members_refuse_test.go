package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// One node of three shows a later configuration that was not decided. No client
// connects to the address that it names, the log says which node it is, and
// holds go on. When the record is put back, the node votes again.
func TestForgedConfiguration(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	operator, _ := gives(t, c, 3)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var reached atomic.Int32
	go func() {
		for {
			nc, err := listener.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = nc.Close()
		}
	}()
	set := exchangeSettings()
	var log logged
	set.Logger = slog.New(slog.NewTextHandler(&log, nil))
	q := opened(t, set, c.Node(0), c.Node(1), c.Node(2))
	first := held(t, q, "first")
	kept := keeps(t, first)
	connected(t, q)

	bad, key := c.Node(0).Client(), script.SetKey(set.Prefix)
	was := bad.Get(t.Context(), key).Val()
	has, ok := nodeset.ParseNodeSet(was)
	require.True(t, ok)
	forged := *has.Config
	forged.Stamp = nodeset.StampOf(99, nodeset.NewBallot(time.Now(), rand.Uint32(), ""))
	forged.Members = []nodeset.Member{{Number: 0, Identity: has.Identity, Addr: c.Node(0).Addr()},
		{Number: 3, Identity: "0123456789abcdef", Addr: listener.Addr().String()}}
	lie := has
	lie.Config = &forged
	marker := script.HomeOf(has.Stamp()).Marker(set.Prefix)
	value := bad.Get(t.Context(), marker).Val()
	require.NoError(t, bad.Set(t.Context(), key, lie.String(), 0).Err())
	require.NoError(t, bad.Rename(t.Context(), marker, script.HomeOf(forged.Stamp).Marker(set.Prefix)).Err())

	require.Eventually(t, func() bool {
		return log.has("has no vote", c.Node(0).Addr(), "serves a later configuration")
	}, time.Minute, time.Millisecond)
	late := opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2))
	for range 20 {
		held(t, q, "other").Release()
		held(t, late, "other").Release()
		finds(t, late, "first", first)
	}
	assert.Equal(t, c.Addrs(), nodesOf(operator))
	assert.Equal(t, c.Addrs(), nodesOf(late))
	require.NoError(t, bad.Set(t.Context(), key, was, 0).Err())
	require.NoError(t, bad.Set(t.Context(), marker, value, 0).Err())
	connected(t, q)
	connected(t, late)
	assert.Zero(t, reached.Load(), "connections to the forged address")
	kept()
	first.Release()
}

// From some moment on, the address of a member leads to a server with another
// member's data, and a third member is down. That server has no vote, and the
// error says what to do.
func TestAddressThatLeadsToAnotherIdentity(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	set := patient()
	set.TTL, set.Guard, set.Retention = 10*time.Minute, 25*time.Minute, time.Hour
	set.Logger = slog.New(slog.DiscardHandler)
	require.NoError(t, opened(t, set, c.Node(0), c.Node(1), c.Node(2)).Bootstrap(within(t)))
	var moved atomic.Bool
	q := started(t, dialing(t, c, 3, func(ctx context.Context, addr string) (net.Conn, error) {
		switch {
		case addr == c.Node(2).Addr():
			return nil, errors.New("cut off")
		case addr == c.Node(0).Addr() && moved.Load():
			addr = c.Node(3).Addr()
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}), set)
	data := c.Node(1).Client().Get(t.Context(), script.SetKey(set.Prefix)).Val()
	require.NoError(t, c.Node(3).Client().Set(t.Context(), script.SetKey(set.Prefix), data, 0).Err())
	held(t, q, "first").Release()
	moved.Store(true)
	q.Nodes.At(0).Link.Reconnect(errors.New("as the test wants it"))
	require.Eventually(t, func() bool {
		f, _ := q.Unready()
		return f != nil && len(f.Nodes) == 2 && strings.Contains(f.Nodes[0].Err.Error(),
			"has the data of "+c.Node(1).Addr()+", another member of this set")
	}, time.Minute, time.Millisecond)
	s, err := q.NewSpec(Spec{Name: "second", Weight: 1, Capacity: 1, Set: &q.Set})
	require.NoError(t, err)
	_, err = q.Acquire(within(t), s, true, nil)
	require.ErrorIs(t, err, fault.ErrNoQuorum, "the server has no vote")
}

// A server that refuses INFO has no vote, because a loss of its data would go
// unnoticed.
func TestServerThatRefusesInfo(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	gives(t, c, 3)
	require.NoError(t, c.Node(0).Client().Do(t.Context(), "ACL", "SETUSER", "limited", "on", ">pw",
		"~*", "&*", "+@all", "-info").Err())
	limited := redis.NewClient(&redis.Options{Addr: c.Node(0).Addr(), Username: "limited", Password: "pw",
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
	t.Cleanup(func() { _ = limited.Close() })
	q := started(t, []redis.UniversalClient{limited, c.Node(1).Client(), c.Node(2).Client()}, exchangeSettings())
	held(t, q, "n").Release()
	require.Eventually(t, func() bool { return errors.Is(q.Nodes.At(0).Err(), fault.ErrNoInfo) },
		time.Minute, time.Millisecond)
}

// A set that another version of the library has recorded is refused with an
// error that says so.
func TestSetOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	recorded := "0 0 c id 1.19a0000000000000001 2 whatever a later version writes"
	require.NoError(t, c.Node(0).Client().Set(t.Context(),
		script.SetKey(setup.Defaults().Prefix), recorded, 0).Err())
	q := started(t, []redis.UniversalClient{c.Node(0).Client()}, exchangeSettings())
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		f, ok := errors.AsType[*fault.Failure](q.Ready(ctx))
		return ok && len(f.Nodes) > 0 && strings.Contains(fmt.Sprint(f.Nodes[0].Err),
			"key version 2, this program has 1")
	}, time.Minute, time.Millisecond)
	assert.Equal(t, recorded, c.Node(0).Client().Get(t.Context(), script.SetKey(setup.Defaults().Prefix)).Val(),
		"it is left as it was")
}
