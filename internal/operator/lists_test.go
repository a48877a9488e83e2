package operator

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A process that starts with the list of before finds the set, and its lock
// keeps out the others.
func TestListOfBefore(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 6)
	operator, q := gives(t, c, 3)
	held(t, q, "first").Release()
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:], Remove: c.URLs()[:3]}))
	assert.Equal(t, c.Addrs()[3:], nodesOf(operator))
	first := held(t, operator, "first")
	kept := keeps(t, operator, first)
	late := opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2))
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual(c.Addrs()[3:], nodesOf(late)) },
		time.Minute, time.Millisecond)
	finds(t, late, "first", first)
	kept()
	first.Release()
	held(t, late, "first").Release()
}

// A client that hears of nothing for two exchanges has lost its hold when it
// comes back, and follows the set.
func TestClientThatMissesTwoExchanges(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	operator, _ := gives(t, c, 3)
	var cut atomic.Bool
	var clients []redis.UniversalClient
	for i := range 3 {
		clients = append(clients,
			redis.NewClient(&redis.Options{Addr: c.Node(i).Addr(),
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
				Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
					if cut.Load() {
						return nil, errors.New("cut off")
					}
					nc, err := (&net.Dialer{}).DialContext(ctx, network, addr)
					return &cuttable{nc, &cut}, err
				}}))
	}
	q, err := core.New(clients, exchangeSettings())
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	mine := held(t, q, "first")
	token := mine.Token(0)
	cut.Store(true)
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:4], Remove: c.URLs()[:1]}))
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[4:5], Remove: c.URLs()[1:2]}))
	assert.False(t, mine.Valid())
	other := held(t, operator, "first")
	assert.Greater(t, other.Token(0), token)
	cut.Store(false)
	want := []string{c.Addrs()[2], c.Addrs()[3], c.Addrs()[4]}
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, nodesOf(q)) },
		time.Minute, time.Millisecond)
	token = other.Token(0)
	other.Release()
	mine = held(t, q, "first")
	assert.Greater(t, mine.Token(0), token)
	mine.Release()
}

// cuttable is a connection that passes on nothing while it is cut.
type cuttable struct {
	net.Conn
	cut *atomic.Bool
}

func (c *cuttable) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.cut.Load() {
		return 0, errors.New("cut off")
	}
	return n, err
}

func (c *cuttable) Write(b []byte) (int, error) {
	if c.cut.Load() {
		return 0, errors.New("cut off")
	}
	return c.Conn.Write(b)
}

// All nodes of a list have left since. One of them has entered again, the other
// still runs with what it had. A client with that list uses the set, whichever
// of the two it meets first, and the node that left long ago can be added
// again.
func TestListWhoseNodesHaveAllLeft(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	operator, _ := gives(t, c, 2)
	replace := func(out, in int) {
		require.NoError(t, Run(minute(t), operator,
			Exchange{Add: c.URLs()[in : in+1], Remove: c.URLs()[out : out+1]}))
	}
	replace(1, 2)
	replace(0, 3)
	// Nodes 2 and 3 are the set now. Node 0 shows 0 and 2.
	require.NoError(t, c.Node(1).Client().FlushAll(t.Context()).Err())
	replace(2, 1)
	want := []string{c.Addrs()[3], c.Addrs()[1]}
	require.Equal(t, want, nodesOf(operator))
	for _, list := range [][]*redistest.Server{{c.Node(0), c.Node(1)}, {c.Node(1), c.Node(0)}} {
		q := opened(t, exchangeSettings(), list...)
		require.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, nodesOf(q)) },
			time.Minute, time.Millisecond)
		require.NoError(t, q.Ready(minute(t)))
		held(t, q, "first").Release()
	}
	replace(3, 0)
	assert.Equal(t, []string{c.Addrs()[1], c.Addrs()[0]}, nodesOf(operator))
}

// A node that was removed while it was down comes back with its data. It has no
// vote, and changes nothing.
func TestRemovedNodeComesBack(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4, redistest.WithAOF("always"))
	operator, q := gives(t, c, 3)
	first := held(t, q, "first")
	kept := keeps(t, q, first)
	require.NoError(t, c.Node(0).Kill())
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:], Remove: c.URLs()[:1]}))
	require.NoError(t, c.Node(0).Restart())
	late := opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2))
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual(c.Addrs()[1:], nodesOf(late)) },
		time.Minute, time.Millisecond)
	finds(t, late, "first", first)
	kept()
	first.Release()
	held(t, late, "first").Release()
	// Its data is of this set, so it can be added again.
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[:1], Remove: c.URLs()[1:2]}))
	assert.Equal(t, []string{c.Addrs()[2], c.Addrs()[3], c.Addrs()[0]}, nodesOf(operator))
	held(t, late, "first").Release()
}

// Of a list's three nodes two have been replaced. What these keep leads a
// client that starts with that list to the set.
func TestTombstonesLeadToTheSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	operator, _ := gives(t, c, 3)
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:4], Remove: c.URLs()[:1]}))
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[4:5], Remove: c.URLs()[1:2]}))
	late := opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2))
	held(t, late, "n").Release()
	assert.Equal(t, c.Addrs()[2:], nodesOf(late))
}

// A member moves to another address with its data. Holds go on, and clients
// with the list of before find it.
func TestMemberMoves(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	operator, q := gives(t, c, 3)
	first := held(t, q, "first")
	kept := keeps(t, q, first)
	to := strings.Replace(c.Node(0).Addr(), "127.0.0.1", "localhost", 1)
	require.NoError(t, Run(minute(t), operator, Exchange{Move: []Move{{From: c.Addrs()[0], To: to}}}))
	want := []string{to, c.Addrs()[1], c.Addrs()[2]}
	for _, one := range []*core.Quorum{operator, q,
		opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2))} {
		require.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, nodesOf(one)) },
			time.Minute, time.Millisecond)
		require.Eventually(t, func() bool {
			s, err := one.Onlooker().Survey(t.Context())
			return err == nil && s.Ready == 3 && s.Nodes[0].Addr == to
		}, time.Minute, time.Millisecond)
		finds(t, one, "first", first)
	}
	kept()
	first.Release()
	// The call again, and one with a typing error.
	for _, from := range []string{c.Addrs()[0], "10.0.0.7:6379"} {
		err := Run(minute(t), operator, Exchange{Move: []Move{{From: from, To: to}}})
		require.ErrorIs(t, err, fault.ErrInvalid)
		assert.ErrorContains(t, err, from+" is not a node of the set, which is "+strings.Join(want, " ")+
			"; "+to+" is, so if this move was made before, there is nothing left to do")
	}
}

// A member gets a second address. A client whose list names that dials it, and
// the others go on as they are. An address of another server, a fifth one and
// one that is too long are refused.
func TestMemberGetsAnotherAddress(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	operator, q := gives(t, c, 3)
	first := held(t, q, "first")
	kept := keeps(t, q, first)
	from, port := c.Addrs()[0], c.Node(0).Addr()[len("127.0.0.1:"):]
	to := "localhost:" + port
	for range 2 { // a call may be repeated
		require.NoError(t, Run(minute(t), operator, Exchange{Move: []Move{{From: from, To: to, Keep: true}}}))
	}
	require.Eventually(t, func() bool { return config(q).Place(to) == 0 && config(q).Place(from) == 0 },
		time.Minute, time.Millisecond)
	there := redis.NewClient(&redis.Options{Addr: to})
	defer func() { _ = there.Close() }()
	late, err := core.New([]redis.UniversalClient{there, c.Node(1).Client(), c.Node(2).Client()},
		exchangeSettings())
	require.NoError(t, err)
	defer func() { _ = late.Close(context.Background()) }()
	require.NoError(t, late.Ready(minute(t)))
	for one, at := range map[*core.Quorum]string{late: to, q: from, operator: from} {
		require.Eventually(t, func() bool {
			s, err := one.Onlooker().Survey(t.Context())
			return err == nil && s.Ready == 3 && s.Nodes[0].Addr == at
		}, time.Minute, time.Millisecond)
		finds(t, one, "first", first)
	}
	kept()
	first.Release()

	refused := func(to, says string) {
		t.Helper()
		err := Run(minute(t), operator, Exchange{Move: []Move{{From: from, To: to, Keep: true}}})
		require.ErrorIs(t, err, fault.ErrInvalid)
		assert.ErrorContains(t, err, says)
	}
	refused(c.Addrs()[1], "does not have the data of")
	refused(strings.Repeat("a", 1025)+":1", "at most 1024 are allowed")
	for _, more := range []string{"Localhost:" + port, "LOCALHOST:" + port} {
		require.NoError(t, Run(minute(t), operator, Exchange{Move: []Move{{From: from, To: more, Keep: true}}}))
	}
	refused("LocalHost:"+port, "already has 4 addresses")
	require.NoError(t, Run(minute(t), operator, Exchange{Move: []Move{{From: to, To: from}}}))
	assert.Equal(t, []string{from}, config(operator).Members[0].All())
}

// A copy of a member's server is no address of it while the member runs: both
// would vote.
func TestACopyIsNoAddress(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 2)
	operator, _ := gives(t, c, 1)
	key := script.SetKey(exchangeSettings().Prefix)
	require.NoError(t, c.Node(1).Client().Set(t.Context(), key,
		c.Node(0).Client().Get(t.Context(), key).Val(), 0).Err())
	for _, keep := range []bool{true, false} {
		err := Run(minute(t), operator, Exchange{Move: []Move{{From: c.Addrs()[0], To: c.Addrs()[1], Keep: keep}}})
		require.ErrorIs(t, err, fault.ErrInvalid)
		assert.ErrorContains(t, err, "is a different server from "+c.Addrs()[0]+", with a copy of its data")
		assert.Equal(t, uint64(1), config(operator).Stamp.Epoch())
	}
}

// The guard time of a set becomes longer, and shorter, while locks are held. A
// client is refused whose ttl the shorter one does not cover, or that asks for
// a longer one than the set's.
func TestSettingsOfASetChange(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	operator, q := gives(t, c, 3)
	first := held(t, q, "first")
	kept := keeps(t, q, first)
	set := func(to time.Duration) {
		t.Helper()
		require.NoError(t, Run(minute(t), operator, Exchange{Shared: &nodeset.Shared{Guard: to}}))
		require.Eventually(t, func() bool { return config(q).Guard() == to && config(operator).Guard() == to },
			time.Minute, time.Millisecond)
	}
	set(7 * time.Second)
	longer := exchangeSettings()
	longer.TTL, longer.Guard = 3*time.Second, 7*time.Second
	held(t, opened(t, longer, c.Node(0), c.Node(1), c.Node(2)), "n").Release()
	set(4500 * time.Millisecond)
	kept()
	first.Release()
	late := started(t, longer, c.Node(0), c.Node(1), c.Node(2))
	var long *fault.TTLError
	require.ErrorAs(t, late.Ready(minute(t)), &long)
	longer.TTL, longer.GuardGiven = 2*time.Second, true
	err := started(t, longer, c.Node(0), c.Node(1), c.Node(2)).Ready(minute(t))
	require.ErrorIs(t, err, fault.ErrInvalid)
	assert.ErrorContains(t, err, "WithGuard(7s) is longer than the set's guard time, 4.5s")
}
