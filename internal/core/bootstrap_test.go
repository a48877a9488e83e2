package core

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/repair"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// brandNew returns a Quorum on servers that no operator has declared brand-new.
func brandNew(t *testing.T, nodes ...*redistest.Server) *Quorum {
	t.Helper()
	set := patient()
	set.Guard = set.Retention // a guard time longer than any test
	return opened(t, set, nodes...)
}

// recorded returns the distinct sets that the servers have recorded.
func recorded(t *testing.T, c *redistest.Cluster, nodes ...int) (sets []string) {
	t.Helper()
	for _, i := range nodes {
		has, ok := nodeset.ParseNodeSet(c.Node(i).Client().Get(t.Context(),
			script.SetKey(setup.Defaults().Prefix)).Val())
		require.True(t, ok)
		if has.Phase == nodeset.SetRecorded && !slices.Contains(sets, string(has.Stamp())) {
			sets = append(sets, string(has.Stamp()))
		}
	}
	return sets
}

// guardLeft returns how much of its guard time each member has left.
func guardLeft(t *testing.T, q *Quorum) (left []time.Duration) {
	t.Helper()
	connected(t, q)
	for _, n := range q.Nodes.Live() {
		var m repair.Marker
		require.Eventually(t, func() (ok bool) { // the node may be reconnecting
			var err error
			m, err = q.repairs.lookAt(within(t), n, q.Members.MarkerKey(), true)
			return err == nil
		}, time.Minute, time.Millisecond)
		left = append(left, m.Wait)
	}
	return left
}

// If a call waits for another recording of the same client, it ends with its
// context.
func TestBootstrapBehindAnother(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	set := setup.Defaults()
	set.TTL, set.NodeTimeout, set.Guard, set.Retention = 4*time.Minute, time.Minute,
		10*time.Minute, 10*time.Minute
	q := opened(t, set, c.Node(0), c.Node(1), c.Node(2))
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(q.Seeds.Live(),
			func(n *peers.Node) bool { return n.Err() != nil || n.Shown() == nil })
	}, time.Minute, time.Millisecond)
	require.NoError(t, c.Node(0).Stop())
	first := make(chan error, 1)
	go func() { first <- q.Bootstrap(context.Background()) }()
	asked := func() bool { // for its promise
		return c.Node(1).Client().Exists(t.Context(), script.SetKey(q.Set.Prefix)).Val() == 1
	}
	require.Eventually(t, asked, time.Minute, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, q.Bootstrap(ctx), fault.ErrNoQuorum)
	require.NoError(t, q.Seeds.Live()[0].Err(), "the node that hangs is still waited for")
	require.Empty(t, first)
	require.NoError(t, c.Node(0).Cont())
	require.NoError(t, <-first)
}

// Brand-new nodes record their set by Bootstrap, called at once after New, and
// vote at once. A list in another order is the same list. Calling Bootstrap
// again changes nothing.
func TestBootstrapRecordsBrandNewNodes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 6)
	q, err := New([]redis.UniversalClient{c.Node(0).Client(), c.Node(1).Client(), c.Node(2).Client()}, patient())
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	require.NoError(t, q.Bootstrap(within(t)))
	assert.True(t, q.Connected(), "each node is connected to")
	sets := recorded(t, c, 0, 1, 2)
	require.Len(t, sets, 1)
	held(t, q, "n").Release()
	assert.Equal(t, []time.Duration{0, 0, 0}, guardLeft(t, q), "all nodes vote")

	var log logged
	set := patient()
	set.Logger = slog.New(slog.NewTextHandler(&log, nil))
	require.NoError(t, opened(t, set, c.Node(2), c.Node(0), c.Node(1)).Bootstrap(within(t)))
	assert.True(t, log.has("already recorded"))
	require.NoError(t, brandNew(t, c.Node(0), c.Node(1), c.Node(3)).Bootstrap(within(t)),
		"two of this list are of one set")
	assert.Equal(t, sets, recorded(t, c, 0, 1, 2, 3))
	require.NoError(t, brandNew(t, c.Node(3)).Bootstrap(within(t)),
		"a list without a common node is a set of its own")
	wrong, err := New([]redis.UniversalClient{c.Node(0).Client(), c.Node(4).Client(), c.Node(5).Client()},
		patient())
	require.NoError(t, err)
	t.Cleanup(func() { _ = wrong.Close(context.Background()) })
	require.ErrorIs(t, wrong.Bootstrap(within(t)), fault.ErrInvalid)
	assert.Empty(t, recorded(t, c, 4, 5))
}

// A node of a recorded set that has just lost its data stays within its guard
// time when Bootstrap is called once more.
func TestBootstrapKeepsAGuardTimeThatRuns(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := brandNew(t, c.Node(0), c.Node(1), c.Node(2))
	require.NoError(t, q.Bootstrap(within(t)))
	connected(t, q)
	require.NoError(t, c.Node(2).Kill())
	require.NoError(t, c.Node(2).Restart())
	require.Eventually(t, func() bool { return len(recorded(t, c, 2)) == 1 }, time.Minute,
		time.Millisecond, "it gets its place back")
	require.NoError(t, q.Bootstrap(within(t)))
	left := guardLeft(t, q)
	assert.Equal(t, []time.Duration{0, 0}, left[:2])
	assert.Positive(t, left[2])
}

// If a node of the list is missing, nothing is recorded, and the error says
// what to do.
func TestBootstrapNeedsEachNode(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := brandNew(t, c.Node(0), c.Node(1), c.Node(2))
	require.NoError(t, c.Node(1).Kill())
	err := q.Bootstrap(within(t))
	require.ErrorIs(t, err, fault.ErrNoQuorum)
	assert.ErrorContains(t, err, "start those that are down")
	assert.Empty(t, recorded(t, c, 0, 2))
	require.NoError(t, c.Node(1).Restart())
	require.NoError(t, q.Bootstrap(within(t)))
	assert.Len(t, recorded(t, c, 0, 1, 2), 1)
}

// If a client has left a recording unfinished, the next Bootstrap of the same
// list finishes it. A Bootstrap of another list is refused.
func TestBootstrapEndsARecording(t *testing.T) {
	t.Parallel()
	for accepted := 1; accepted <= 3; accepted++ {
		c := redistest.Start(t, 4)
		first := brandNew(t, c.Node(0), c.Node(1), c.Node(2))
		ballot := nodeset.NewBallot(time.Now(), rand.Uint32(), "")
		shared := nodeset.Shared{Guard: first.Set.Guard, Retention: first.Set.Retention, Skew: first.Set.Skew}
		conf := &nodeset.Configuration{Stamp: nodeset.StampOf(1, ballot), Origin: nodeset.StampOf(1, ballot),
			Now: shared, Next: shared, Last: 2}
		for i, addr := range first.Clients.List() {
			conf.Members = append(conf.Members,
				nodeset.Member{Number: i, Identity: strings.Repeat(strconv.Itoa(i+1), 16), Addr: addr})
		}
		for i := range accepted {
			require.Eventually(t, func() bool { return first.Node(nodeset.Seed+i).Err() == nil },
				time.Minute, time.Millisecond)
			for _, step := range []nodeset.RecordStep{
				{Node: nodeset.Seed + i, Kind: nodeset.SetPromise, Ballot: ballot},
				{Node: nodeset.Seed + i, Kind: nodeset.SetAccept, Ballot: ballot,
					Identity: conf.Members[i].Identity, Config: conf},
			} {
				require.Eventually(t, func() bool { // a busy machine may just have lost the connection
					_, err := first.Node(step.Node).Answer(within(t),
						script.AppendSet(nil, first.Set.Prefix, step, peers.NewID(), ""))
					return err == nil
				}, time.Minute, time.Millisecond)
			}
		}
		require.NoError(t, first.Close(context.Background()))
		assert.Empty(t, recorded(t, c, 0, 1, 2))

		if accepted == 1 { // it is refused after ten node timeouts
			err := brandNew(t, c.Node(0), c.Node(3)).Bootstrap(within(t))
			require.ErrorIs(t, err, fault.ErrInvalid)
			assert.ErrorContains(t, err, "begun to record another list, "+strings.Join(conf.Addrs(), " "))
		}
		next := brandNew(t, c.Node(0), c.Node(1), c.Node(2))
		require.NoError(t, next.Bootstrap(within(t)))
		assert.Equal(t, []string{string(conf.Stamp)}, recorded(t, c, 0, 1, 2))
		assert.Equal(t, []time.Duration{0, 0, 0}, guardLeft(t, next), "all nodes vote")
	}
}

// If two lists are declared at the same time, at most one is recorded. The
// other call uses that set if q nodes of its own list belong to it; otherwise
// it is refused.
func TestBootstrapOfTwoListsAtOnce(t *testing.T) {
	t.Parallel()
	for range 8 {
		c := redistest.Start(t, 5)
		lists := []*Quorum{brandNew(t, c.Node(0), c.Node(1), c.Node(2)),
			brandNew(t, c.Node(2), c.Node(3), c.Node(4))}
		errs := make([]error, len(lists))
		var all sync.WaitGroup
		for i, q := range lists {
			all.Go(func() { errs[i] = q.Bootstrap(within(t)) })
		}
		all.Wait()
		won := slices.Index(errs, nil)
		require.GreaterOrEqual(t, won, 0, "%v", errs)
		require.ErrorIs(t, errs[1-won], fault.ErrInvalid)
		assert.ErrorContains(t, errs[1-won], "this client's list")
		assert.Len(t, recorded(t, c, 0, 1, 2, 3, 4), 1)
		held(t, lists[won], "n").Release()
	}
}

// Blank nodes record their set by themselves once a call waits for them, and
// vote after the guard time. Many clients may do so at once.
func TestFirstLockRecordsTheSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	var all sync.WaitGroup
	for range 4 {
		q := opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2))
		all.Go(func() { held(t, q, "n").Release() })
	}
	all.Wait()
	assert.Len(t, recorded(t, c, 0, 1, 2), 1)
}

// A try on blank nodes makes them record their set, and its error says what it
// waited for. A client that only looks, like "quorate check", does not make
// them record anything.
func TestTryOnBrandNewNodes(t *testing.T) {
	t.Parallel()
	for _, looks := range []bool{false, true} {
		c := redistest.Start(t, 3)
		set := patient()
		set.Guard, set.LooksOnly = set.Retention, looks
		q := opened(t, set, c.Node(0), c.Node(1), c.Node(2))
		s, err := q.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 1, Set: &q.Set})
		require.NoError(t, err)
		_, err = q.Acquire(within(t), s, true, nil)
		require.ErrorIs(t, err, fault.ErrNoQuorum)
		if looks {
			assert.Empty(t, recorded(t, c, 0, 1, 2))
		} else {
			assert.Len(t, recorded(t, c, 0, 1, 2), 1)
		}
	}
}

// A set that another client has recorded, as this one has asked the nodes for
// their promises, is not the work of this call.
func TestBootstrapMeetsASetThatAnotherHasRecorded(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	var log logged
	set := setup.Defaults()
	set.TTL, set.NodeTimeout, set.Guard, set.Retention = 4*time.Minute, time.Minute,
		10*time.Minute, 10*time.Minute
	set.Logger = slog.New(slog.NewTextHandler(&log, nil))
	q := opened(t, set, c.Node(0), c.Node(1), c.Node(2))
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(q.Seeds.Live(),
			func(n *peers.Node) bool { return n.Err() != nil || n.Shown() == nil })
	}, time.Minute, time.Millisecond)
	set.Logger = slog.New(slog.DiscardHandler)
	require.NoError(t, opened(t, set, c.Node(0), c.Node(1), c.Node(2)).Bootstrap(within(t)))
	require.NoError(t, q.Bootstrap(within(t)))
	assert.True(t, log.has("already recorded"))
}

// A call that waits for brand-new nodes leaves an operator time to declare them
// new, so that all of them vote at once.
func TestBootstrapWhileACallWaits(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	set := setup.Defaults()
	set.TTL, set.NodeTimeout, set.Guard, set.Retention = 4*time.Minute, time.Minute,
		10*time.Minute, 10*time.Minute
	q := opened(t, set, c.Node(0), c.Node(1), c.Node(2))
	call := make(chan struct{})
	go func() {
		defer close(call)
		held(t, q, "n").Release()
	}()
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(q.Seeds.Live(),
			func(n *peers.Node) bool { return n.Err() != nil || n.Shown() == nil })
	}, time.Minute, time.Millisecond)
	operator := opened(t, set, c.Node(0), c.Node(1), c.Node(2))
	require.NoError(t, operator.Bootstrap(within(t)))
	assert.Equal(t, []time.Duration{0, 0, 0}, guardLeft(t, operator))
	<-call
}
