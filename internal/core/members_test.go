package core

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// within is a context that ends with the test, or after a time that no busy
// machine needs.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// dialing returns clients of the first n servers, whose connections dial makes.
// Connections to members that the list does not have are made by the first one.
func dialing(t *testing.T, c *redistest.Cluster, n int, dial func(ctx context.Context,
	addr string) (net.Conn, error)) (clients []redis.UniversalClient) {
	t.Helper()
	for i := range n {
		client := redis.NewClient(&redis.Options{
			Addr:                     c.Node(i).Addr(),
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) {
				return dial(ctx, addr)
			},
		})
		t.Cleanup(func() { _ = client.Close() })
		clients = append(clients, client)
	}
	return clients
}

// started is a Quorum of these clients.
func started(t *testing.T, clients []redis.UniversalClient, set setup.Settings) *Quorum {
	t.Helper()
	q, err := New(clients, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	return q
}

// logged is a logger, and what it was given.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			return true
		}
	}
	return false
}

// A claim with settings of its own counts on the Quorum's set too. Otherwise
// every request would be refused, and every node would be reconnected
// endlessly.
func TestSettingsMadeApart(t *testing.T) {
	t.Parallel()
	q := idle(t, redistest.Start(t, 1))
	own := setup.Defaults()
	own.TTL, own.Guard = time.Minute, 3*time.Minute
	spec, err := q.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 1, Set: &own})
	require.NoError(t, err)
	h, err := q.Acquire(within(t), spec, false, nil)
	require.NoError(t, err)
	h.Release()
}

// A client whose list has one node that is not a member uses the set, and logs
// that the node has no vote. A client whose list has fewer than q members is
// refused, with both lists in the error.
func TestListsThatAreNotTheSets(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	_, q := gives(t, c, 3)
	first := held(t, q, "first")
	set := exchangeSettings()
	var log logged
	set.Logger = slog.New(slog.NewTextHandler(&log, nil))
	most := opened(t, set, c.Node(4), c.Node(1), c.Node(0))
	finds(t, most, "first", first)
	assert.ElementsMatch(t, c.Addrs()[:3], nodesOf(most))
	require.Eventually(t, func() bool { return log.has("a listed node", c.Node(4).Addr()) },
		time.Minute, time.Millisecond)
	assert.Zero(t, c.Node(4).Client().DBSize(t.Context()).Val(), "a node that is no member is left as it was")

	few := started(t, []redis.UniversalClient{c.Node(0).Client(), c.Node(3).Client(), c.Node(4).Client()},
		exchangeSettings())
	var err error
	require.Eventually(t, func() bool { // it knows by then that its other nodes are not brand-new
		err = few.Ready(within(t))
		return errors.Is(err, fault.ErrInvalid)
	}, time.Minute, time.Millisecond)
	assert.ErrorContains(t,
		err, "this client's list, "+strings.Join([]string{c.Addrs()[0], c.Addrs()[3], c.Addrs()[4]}, " "))
	assert.ErrorContains(t, err, "the set "+strings.Join(c.Addrs()[:3], " "))
	var f *fault.Failure
	// As a call finds it that began before; not while a node is judged again.
	require.Eventually(t, func() (hopeless bool) {
		f, hopeless = few.Unready()
		return hopeless
	}, time.Minute, time.Millisecond)
	assert.ErrorIs(t, f, fault.ErrInvalid)
	assert.ErrorContains(t, f, "this client's list, ")
	first.Release()
}

// A client that lists the nodes under other addresses than the set records
// reaches them at the recorded addresses.
func TestListOfOtherAddresses(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	gives(t, c, 3)
	var clients []redis.UniversalClient
	for i := range 3 {
		client := redis.NewClient(&redis.Options{
			Addr:                     strings.Replace(c.Node(i).Addr(), "127.0.0.1", "localhost", 1),
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		t.Cleanup(func() { _ = client.Close() })
		clients = append(clients, client)
	}
	q := started(t, clients, exchangeSettings())
	held(t, q, "n").Release()
	connected(t, q)
	assert.Equal(t, c.Addrs(), nodesOf(q))
}

// A server has the data of a member that has left the set since the server was
// judged.
func TestVerdictOfAnEarlierSet(t *testing.T) {
	t.Parallel()
	q := idle(t, redistest.Start(t, 1))
	v := nodeset.SetVerdict{Fault: nodeset.SetOther, As: "0123456789abcdef", Set: q.Members.Config.Load()}
	assert.ErrorIs(t, q.Members.VerdictError(v), fault.ErrRejudged)
}

// Requests name a configuration only after every claim knows it.
func TestRequestsNameASetThatClaimsKnow(t *testing.T) {
	t.Parallel()
	assert.False(t, namesTooEarly(t))
}

// namesTooEarly reports whether requests name a configuration that a claim does
// not know yet.
func namesTooEarly(t *testing.T) bool {
	c := redistest.Start(t, 3)
	q := idle(t, c)
	joint := change.Begin(q.Members.Config.Load(), change.Goal{Remove: []string{c.Node(2).Addr()}},
		nodeset.NewBallot(time.Now(), rand.Uint32(), ""))
	h := held(t, q, "n")
	a := h.a
	a.mu.Lock() // a cannot process any event
	changed := make(chan struct{})
	go func() {
		q.Members.Change(-1, func(m *nodeset.Membership) { m.Decide(joint) })
		close(changed)
	}()
	require.Eventually(t, func() bool { return q.Members.Config.Load().Stamp == joint.Stamp },
		time.Minute, time.Millisecond)
	early := q.Members.Home().Stamp() == joint.Stamp
	a.mu.Unlock()
	gone(t, changed)
	require.Eventually(t, func() bool { return q.Members.Home().Stamp() == joint.Stamp },
		time.Minute, time.Millisecond)
	h.Release()
	return early
}

// Two goroutines may carry out two steps in either order. What counts is the
// set at the end.
func TestAStepThatIsCarriedOutLate(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := idle(t, c)
	set := q.Members.Config.Load()
	b := nodeset.NewBallot(time.Now(), rand.Uint32(), "")
	decide := func(c *nodeset.Configuration) {
		q.Members.Change(-1, func(m *nodeset.Membership) { m.Decide(c) })
	}
	late := func(a nodeset.SetAction) { q.Members.CarryOut(-1, []nodeset.SetAction{a}) }
	ended := nodeset.SetAction{RecordStep: nodeset.RecordStep{Node: 2}, Cease: true}
	begins := nodeset.SetAction{RecordStep: nodeset.RecordStep{Node: 2}, Begin: true}
	n := q.Nodes.At(2)
	late(ended)
	assert.False(t, n.Dropped.Load(), "a member is dropped")
	joint := change.Begin(set, change.Goal{Remove: []string{c.Node(2).Addr()}}, b)
	decide(joint)
	decide(change.Finish(joint, b))
	gone(t, n.Ended)
	late(begins)
	assert.True(t, q.Nodes.At(2).Dropped.Load(), "a node that has left is connected to")
	connected(t, q)
	held(t, q, "n").Release()
}

// A node whose register of what follows cannot be read has not said that
// nothing follows. Two such nodes give a third one no place back.
func TestAWordNeedsTheRegister(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	set := setup.Defaults()
	set.TTL, set.Skew, set.Guard, set.NodeTimeout = 4*time.Second,
		50*time.Millisecond, 9*time.Second, time.Second
	set.Logger = slog.New(slog.DiscardHandler)
	q := declared(t, c, set)
	register := script.NewKeys(q.Set.Prefix, nodeset.SuccessorName(q.Members.Config.Load().Stamp)).Record()
	refused := func(i int) bool {
		stats := c.Node(i).Client().InfoMap(t.Context(), "commandstats").Item("Commandstats", "cmdstat_getrange")
		_, after, _ := strings.Cut(stats, "failed_calls=")
		n, _ := strconv.Atoi(after)
		return n >= 3
	}
	for i := 1; i < 3; i++ {
		require.NoError(t, c.Node(i).Client().SAdd(t.Context(), register, "x").Err())
	}
	key := script.SetKey(q.Set.Prefix)
	require.NoError(t, c.Node(0).Client().FlushAll(t.Context()).Err())
	require.NoError(t, c.Node(0).Client().ClientKillByFilter(t.Context(), "SKIPME", "yes").Err())
	require.Eventually(t, func() bool { return refused(1) && refused(2) }, time.Minute, time.Millisecond)
	has, _ := nodeset.ParseNodeSet(c.Node(0).Client().Get(t.Context(), key).Val())
	assert.Nil(t, has.Recorded(), "it has its place back by the word of nodes that cannot say what follows")
	for i := 1; i < 3; i++ {
		require.NoError(t, c.Node(i).Client().Del(t.Context(), register).Err())
	}
	require.Eventually(t, func() bool {
		has, _ := nodeset.ParseNodeSet(c.Node(0).Client().Get(t.Context(), key).Val())
		return has.Recorded() != nil
	}, time.Minute, time.Millisecond)
}

// A client whose list has more addresses than the set has members drops the
// connections to the others when it forgets the set: from then on its list is
// the list of the members. Otherwise Ready, which accepts brand-new nodes,
// would wait forever.
func TestTheRestOfAListIsForgottenWithItsSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	a, b := gives(t, c, 3)
	q := opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2), c.Node(3), c.Node(4))
	_, _ = a.Close(context.Background()), b.Close(context.Background())
	becomes := func(is func() bool, what string) {
		t.Helper()
		require.Eventually(t, is, time.Minute, time.Millisecond, what)
	}
	up := func() (n int) {
		for _, s := range q.Seeds.Live() {
			if s.Err() == nil {
				n++
			}
		}
		return n
	}
	becomes(func() bool { return len(q.Seeds.Live()) == 0 }, "it needs its set alone")
	for i := range 3 {
		require.NoError(t, c.Node(i).Kill())
	}
	becomes(func() bool { return up() == 2 }, "it asks its list")
	for i := range 3 {
		require.NoError(t, c.Node(i).Restart())
	}
	becomes(func() bool { return q.Members.Config.Load() == nil }, "it forgets its set")
	becomes(func() bool { return len(q.Seeds.Live()) == 3 && up() == 3 }, "it has connections to its list")
	require.NoError(t, q.Ready(within(t)))
	require.NoError(t, q.Bootstrap(within(t)))
	becomes(func() bool { return len(q.Seeds.Live()) == 0 }, "it needs its set alone")
}
