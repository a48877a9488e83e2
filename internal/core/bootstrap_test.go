package core

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// guardIsKept reports whether a node that has just lost its data stays within
// its guard time when an operator records the set, which is in use.
func guardIsKept(t *testing.T) bool {
	c := redistest.Start(t, 3)
	operator, _ := gives(t, c, 3)
	require.NoError(t, operator.BootstrapSet(within(t)))
	require.NoError(t, c.Node(2).Kill())
	require.NoError(t, c.Node(2).Restart())
	left := func() (left time.Duration, marked bool) {
		res := operator.nodes.at(2).lookAt(t.Context(), operator.members.markerKey(), true)
		return res.Wait, res.Err == nil && res.Incarnation != 0
	}
	require.Eventually(t, func() bool { wait, marked := left(); return marked && wait > 0 }, time.Minute, time.Millisecond)
	require.NoError(t, operator.BootstrapSet(within(t)))
	wait, _ := left()
	return wait > 0
}

// A node that lost its data does not vote because an operator records the set
// once more. Before, it voted at once, beside the holders that it had
// forgotten.
func TestBootstrapKeepsAGuardTimeThatRuns(t *testing.T) {
	t.Parallel()
	assert.True(t, guardIsKept(t))
}

// A call that could not declare one node the first time declares it when it
// tries again: that none of them voted before it began is what counts. Before,
// the node stayed within its guard time, and with another node down there was
// no quorum.
func TestBootstrapTriesAgain(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2))
	b := newBootstrap(q, recordsAny)
	require.Eventually(t, func() bool { return b.record(within(t)) == nil }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { // the nodes are connected to again
		votes, incs, err := b.end(within(t), func(int) string { return script.EndNone })
		assert.False(t, votes)
		return err == nil && !b.d.Declared(votes, incs)
	}, time.Minute, time.Millisecond)
	require.NoError(t, c.Node(1).Stop())
	require.ErrorIs(t, b.ready(within(t)), ErrNoQuorum)
	require.NoError(t, c.Node(1).Cont())
	require.Eventually(t, func() bool { return b.ready(within(t)) == nil }, time.Minute, time.Millisecond)
	for i := range c.Len() {
		res := q.nodes.at(i).lookAt(within(t), q.members.markerKey(), true)
		require.NoError(t, res.Err)
		assert.Zero(t, res.Wait, "node %d votes", i)
	}
}

// brandNew is a Quorum on servers that no operator has declared new.
func brandNew(t *testing.T, nodes ...*redistest.Server) *Quorum {
	t.Helper()
	set := Defaults() // a guard time that ends during no test
	set.Guard, set.NodeTimeout = set.Retention, 2*time.Second
	return opened(t, set, nodes...)
}

// recorded returns what the servers have recorded of their set, each once.
func recorded(t *testing.T, c *redistest.Cluster, nodes ...int) (sets []string) {
	t.Helper()
	for _, i := range nodes {
		has, ok := protocol.ParseNodeSet(c.Node(i).Client().Get(t.Context(), script.SetKey(Defaults().Prefix)).Val())
		require.True(t, ok)
		if has.Phase == protocol.SetRecorded && !slices.Contains(sets, string(has.Stamp())) {
			sets = append(sets, string(has.Stamp()))
		}
	}
	return sets
}

// guardLeft returns how much of its guard time each node has left.
func guardLeft(t *testing.T, q *Quorum) (left []time.Duration) {
	t.Helper()
	for i := range q.Size() {
		var res protocol.RepairResult
		require.Eventually(t, func() bool { // it may be connected to again
			res = q.nodes.at(i).lookAt(within(t), q.members.markerKey(), true)
			return res.Err == nil
		}, time.Minute, time.Millisecond)
		left = append(left, res.Wait)
	}
	return left
}

// Brand-new nodes record their set by Bootstrap alone, called at once after
// New, and a client with another list is refused. To call it again changes
// nothing.
func TestBootstrapRecordsBrandNewNodes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	q, err := New([]redis.UniversalClient{c.Node(0).Client(), c.Node(1).Client(), c.Node(2).Client()}, Defaults())
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	require.NoError(t, q.Bootstrap(within(t)))
	sets := recorded(t, c, 0, 1, 2)
	require.Len(t, sets, 1)
	assert.Equal(t, []time.Duration{0, 0, 0}, guardLeft(t, q), "all nodes vote")
	held(t, q, "n").Release()

	require.NoError(t, brandNew(t, c.Node(2), c.Node(0), c.Node(1)).Bootstrap(within(t)))
	assert.Equal(t, sets, recorded(t, c, 0, 1, 2))
	other := opened(t, Defaults(), c.Node(3))
	err = other.Bootstrap(within(t))
	require.NoError(t, err, "a list without a common node is a set of its own")
	wrong, err := New([]redis.UniversalClient{c.Node(0).Client(), c.Node(1).Client(), c.Node(3).Client()}, Defaults())
	require.NoError(t, err)
	t.Cleanup(func() { _ = wrong.Close(context.Background()) })
	require.ErrorIs(t, wrong.Bootstrap(within(t)), ErrInvalid)
}

// leavesAUsedSet reports whether Bootstrap leaves a set alone that is in use,
// and returns a client of it.
func leavesAUsedSet(t *testing.T) (left bool, q *Quorum) {
	c := redistest.Start(t, 3)
	require.NoError(t, brandNew(t, c.Node(0)).BootstrapUnrecorded(within(t))) // a client of another list
	q = brandNew(t, c.Node(0), c.Node(1), c.Node(2))
	require.NoError(t, q.Bootstrap(within(t)))
	return len(recorded(t, c, 0, 1, 2)) == 0, q
}

// A set that is in use is recorded by the operator's word only: clients of
// another list, and programs that know no sets, would be refused because a
// deployment calls Bootstrap once more.
func TestBootstrapLeavesAUsedSet(t *testing.T) {
	t.Parallel()
	left, q := leavesAUsedSet(t)
	assert.True(t, left)
	assert.Equal(t, []time.Duration{0, 0, 0}, guardLeft(t, q), "all nodes vote")
}

// Without a node of the list nothing is recorded, and the error says what to
// do.
func TestBootstrapNeedsEachNode(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := brandNew(t, c.Node(0), c.Node(1), c.Node(2))
	require.NoError(t, c.Node(1).Kill())
	err := q.Bootstrap(within(t))
	require.ErrorIs(t, err, ErrNoQuorum)
	assert.ErrorContains(t, err, "start those that do not")
	assert.ErrorContains(t, err, "--record=false")
	assert.Empty(t, recorded(t, c, 0, 2))
	require.ErrorIs(t, q.BootstrapUnrecorded(within(t)), ErrNoQuorum)
	for _, i := range []int{0, 2} {
		res := q.nodes.at(i).lookAt(within(t), q.members.markerKey(), true)
		require.NoError(t, res.Err)
		assert.Zero(t, res.Wait, "node %d votes all the same", i)
	}
}

// A recording that a client has begun, and has not ended, is ended by the next
// Bootstrap of its list. One of another list is refused.
func TestBootstrapEndsARecording(t *testing.T) {
	t.Parallel()
	for accepted := 1; accepted <= 3; accepted++ {
		c := redistest.Start(t, 4)
		first := brandNew(t, c.Node(0), c.Node(1), c.Node(2))
		b := newBootstrap(first, recordsNew)
		ballot := protocol.NewBallot(first.wall.time(), chance(), "")
		conf := &protocol.Configuration{Stamp: protocol.StampOf(1, ballot), Guard: first.set.Guard, Retention: first.set.Retention}
		for i, n := range first.nodes.all() {
			conf.Members = append(conf.Members, protocol.Member{Identity: strings.Repeat(strconv.Itoa(i+1), 16), Addr: n.addr})
		}
		for i := range accepted {
			require.Eventually(t, func() bool { // it may be connected to again
				r := protocol.NewRecording(conf, ballot, rules())
				r.Out = []protocol.RecordStep{{Node: i, Kind: protocol.SetAccept, Ballot: ballot, Identity: conf.Members[i].Identity, Config: conf}}
				_, err := b.recordSteps(within(t), r)
				return err == nil
			}, time.Minute, time.Millisecond)
		}
		require.NoError(t, first.Close(context.Background()))
		assert.Empty(t, recorded(t, c, 0, 1, 2))

		require.ErrorIs(t, brandNew(t, c.Node(0), c.Node(3)).Bootstrap(within(t)), ErrInvalid)
		next := brandNew(t, c.Node(0), c.Node(1), c.Node(2))
		require.NoError(t, next.Bootstrap(within(t)))
		assert.Equal(t, []string{string(conf.Stamp)}, recorded(t, c, 0, 1, 2))
		assert.Equal(t, []time.Duration{0, 0, 0}, guardLeft(t, next), "all nodes vote")
	}
}

// Of two lists that are declared at the same time one is recorded at most. The
// other call says which set the nodes are.
func TestBootstrapOfTwoListsAtOnce(t *testing.T) {
	t.Parallel()
	for range 15 {
		c := redistest.Start(t, 4)
		lists := []*Quorum{brandNew(t, c.Node(0), c.Node(1), c.Node(2)), brandNew(t, c.Node(0), c.Node(1), c.Node(3))}
		errs := make([]error, len(lists))
		var all sync.WaitGroup
		for i, q := range lists {
			all.Go(func() { errs[i] = q.Bootstrap(within(t)) })
		}
		all.Wait()
		won := slices.Index(errs, nil)
		require.GreaterOrEqual(t, won, 0, "%v", errs)
		require.ErrorIs(t, errs[1-won], ErrInvalid)
		assert.ErrorContains(t, errs[1-won], "the list of this client")
		assert.Len(t, recorded(t, c, 0, 1, 2, 3), 1)
		held(t, lists[won], "n").Release()
	}
}
