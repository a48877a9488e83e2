package operator

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// forwarded returns an address that leads to a server until cut is called.
func forwarded(t *testing.T, to string) (addr string, cut func()) {
	ctx, cut := context.WithCancel(t.Context())
	return redistest.Serve(t, func(nc net.Conn) {
		up, err := net.Dial("tcp", to)
		if err != nil || ctx.Err() != nil {
			return
		}
		defer context.AfterFunc(ctx, func() { _ = nc.Close(); _ = up.Close() })()
		go func() { _, _ = io.Copy(up, nc); _ = up.Close() }()
		_, _ = io.Copy(nc, up)
	}), cut
}

// listing starts a client with a list of addresses.
func listing(t *testing.T, addrs ...string) *core.Quorum {
	t.Helper()
	var clients []redis.UniversalClient
	for _, addr := range addrs {
		c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
		t.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	q, err := core.New(clients, exchangeSettings())
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	return q
}

// recordedElsewhere returns a set of n servers that is recorded at addresses
// which lead to them until they are cut.
func recordedElsewhere(t *testing.T, n int) (c *redistest.Cluster, old []string, cut []func()) {
	c = redistest.Start(t, n)
	for i := range n {
		addr, end := forwarded(t, c.Node(i).Addr())
		old, cut = append(old, addr), append(cut, end)
	}
	q := listing(t, old...)
	require.NoError(t, q.Bootstrap(minute(t)))
	require.NoError(t, q.Close(minute(t)))
	return c, old, cut
}

// advises waits until the error of each node of a client names a command.
func advises(t *testing.T, q *core.Quorum, command string) {
	t.Helper()
	require.Eventually(t, func() bool {
		f, _ := q.Unready()
		return f != nil && !slices.ContainsFunc(f.Nodes, func(n fault.NodeFailure) bool {
			return !strings.Contains(n.Err.Error(), ": "+command+";")
		})
	}, time.Minute, time.Millisecond, command)
}

// The only member of a set has moved, as when it was first used as localhost
// from its host, and then by another name from a container. A client with the
// new address waits, and its error names the command that ends this. After the
// command the client locks.
func TestTheOnlyMemberHasMoved(t *testing.T) {
	t.Parallel()
	c, old, cut := recordedElsewhere(t, 1)
	cut[0]()
	waits := listing(t, c.Addrs()...)
	advises(t, waits, "quorate members move "+old[0]+" "+c.Addrs()[0])
	require.NoError(t, Run(minute(t), listing(t, c.Addrs()...),
		Exchange{Move: []Move{{From: old[0], To: c.Addrs()[0]}}}))
	require.NoError(t, waits.Ready(minute(t)))
	assert.Equal(t, c.Addrs(), nodesOf(waits))
	held(t, waits, "first").Release()
}

// All members have moved. One call records the addresses of all.
func TestAllMembersHaveMoved(t *testing.T) {
	t.Parallel()
	c, old, cut := recordedElsewhere(t, 3)
	var moves []Move
	pairs := ""
	for i := range old {
		cut[i]()
		moves = append(moves, Move{From: old[i], To: c.Addrs()[i]})
		pairs += " " + old[i] + " " + c.Addrs()[i]
	}
	waits := listing(t, c.Addrs()...)
	advises(t, waits, "quorate members move"+pairs)
	require.NoError(t, Run(minute(t), listing(t, c.Addrs()...), Exchange{Move: moves}))
	require.NoError(t, waits.Ready(minute(t)))
	assert.Equal(t, c.Addrs(), nodesOf(waits))
	held(t, waits, "first").Release()
}

// Two of three members have moved. Their addresses may be recorded one after
// the other.
func TestAMajorityHasMoved(t *testing.T) {
	t.Parallel()
	c, old, cut := recordedElsewhere(t, 3)
	now := []string{c.Addrs()[0], c.Addrs()[1], old[2]}
	cut[0]()
	cut[1]()
	operator := listing(t, now...)
	require.NoError(t, Run(minute(t), operator, Exchange{Move: []Move{{From: old[0], To: now[0]}}}))
	require.NoError(t, Run(minute(t), operator, Exchange{Move: []Move{{From: old[1], To: now[1]}}}))
	q := listing(t, now...)
	require.NoError(t, q.Ready(minute(t)))
	assert.Equal(t, now, nodesOf(q))
	held(t, q, "first").Release()
}

// A call that must not move a member changes nothing, and leaves the client as
// it was: the server at the new address is not the member, the member answers
// at its own address and the other is a copy, or one member is named twice.
func TestNoServerStandsForAMemberThatAnswers(t *testing.T) {
	t.Parallel()
	c, old, cut := recordedElsewhere(t, 3)
	cut[1]()
	cut[2]()
	key := script.SetKey(exchangeSettings().Prefix)
	others := redistest.Start(t, 2)
	require.NoError(t, others.Node(1).Client().Set(t.Context(), key,
		c.Node(0).Client().Get(t.Context(), key).Val(), 0).Err())
	operator := listing(t, old[0], c.Addrs()[1], c.Addrs()[2])
	for says, moves := range map[string][]Move{
		"does not have the data of " + old[1]: {{From: old[1], To: others.Addrs()[0]}},
		"with a copy of its data":             {{From: old[0], To: others.Addrs()[1]}, {From: old[1], To: c.Addrs()[1]}},
		"does not answer, so " + c.Addrs()[1]: {{From: old[1], To: c.Addrs()[1], Keep: true}},
		"in more than one move":               {{From: old[1], To: c.Addrs()[1]}, {From: old[1], To: c.Addrs()[1]}},
		"10.0.0.7:6379 is not a node":         {{From: "10.0.0.7:6379", To: c.Addrs()[1]}},
	} {
		err := Run(minute(t), operator, Exchange{Move: moves})
		require.ErrorIs(t, err, fault.ErrInvalid)
		assert.ErrorContains(t, err, says)
		assert.Equal(t, old, nodesOf(operator))
		f, _ := operator.Unready()
		assert.NotNil(t, f)
	}
}

// The only member stands still for a moment, and the new address leads to a copy
// of its data. The copy must not stand in for it: the member goes on serving its
// clients.
func TestNoCopyStandsForAMemberThatComesBack(t *testing.T) {
	t.Parallel()
	c, old, _ := recordedElsewhere(t, 1)
	copied := redistest.Start(t, 1).Node(0)
	key := script.SetKey(exchangeSettings().Prefix)
	data := c.Node(0).Client().Get(t.Context(), key).Val()
	require.NoError(t, copied.Client().Set(t.Context(), key, data, 0).Err())
	operator := listing(t, old...)
	require.NoError(t, operator.Ready(minute(t)))
	require.NoError(t, c.Node(0).Stop())
	t.Cleanup(func() { _ = c.Node(0).Cont() })
	require.Eventually(t, func() bool {
		f, _ := operator.Unready()
		return f != nil
	}, time.Minute, time.Millisecond)
	connections := func() string {
		return copied.Client().InfoMap(t.Context(), "stats").Item("Stats", "total_connections_received")
	}
	before, moved := connections(), make(chan error, 1)
	go func() { moved <- Run(minute(t), operator, Exchange{Move: []Move{{From: old[0], To: copied.Addr()}}}) }()
	require.Eventually(t, func() bool { return connections() != before }, time.Minute, time.Millisecond)
	require.NoError(t, c.Node(0).Cont())
	assert.ErrorContains(t, <-moved, "with a copy of its data")
}
