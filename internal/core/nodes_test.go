package core

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// replaceable is a Quorum of the first three servers, and the client of a
// fourth one, which could take the place of the third: it has that one's record
// and votes.
func replaceable(t *testing.T, c *redistest.Cluster) (*Quorum, redis.UniversalClient) {
	t.Helper()
	set := setup.Defaults()
	// So that a busy machine ends no hold.
	set.TTL, set.Guard, set.NodeTimeout = time.Minute, 3*time.Minute, time.Second
	q := opened(t, set, c.Node(0), c.Node(1), c.Node(2))
	require.NoError(t, q.Bootstrap(within(t)))
	connected(t, q)
	run := func(i int) string {
		return c.Node(i).Client().InfoMap(t.Context(),
			"server").Item("Server", "run_id")
	}
	for _, key := range []string{script.SetKey(set.Prefix), q.Members.MarkerKey()} {
		value := strings.Replace(c.Node(2).Client().Get(t.Context(), key).Val(), run(2), run(3), 1)
		require.NoError(t, c.Node(3).Client().Set(t.Context(), key, value, 0).Err())
	}
	return q, c.Node(3).Client()
}

// connected waits until each member of the set is.
func connected(t *testing.T, q *Quorum) {
	t.Helper()
	require.Eventually(t, q.Connected, time.Minute, time.Millisecond)
}

func gone(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-within(t).Done():
		require.Fail(t, "the node has not ended")
	}
}

// When a node is dropped, its connections, subscriptions and requests end.
// Holds continue, and move to the node that takes its place.
func TestANodeComesAndGoes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	q, spare := replaceable(t, c)
	has := func(i int) bool { return c.Node(i).Client().Exists(t.Context(), "n").Val() == 1 }
	h := held(t, q, "n")
	require.Eventually(t, func() bool { return has(2) }, 30*time.Second, time.Millisecond)
	s, err := q.NewSpec(Spec{Name: "watched", Weight: 1, Capacity: 1, Set: &q.Set})
	require.NoError(t, err)
	w := q.Register(s).Watch()
	defer w.Close()
	subscribed := func(i int) bool {
		return strings.Contains(strings.Join(c.Node(i).Client().PubSubChannels(t.Context(), "*").Val(), " "),
			q.Channel)
	}
	require.Eventually(t, func() bool { return subscribed(2) }, 30*time.Second, time.Millisecond)

	gone(t, q.Drop(2))
	// The server may hear of it later.
	assert.Eventually(t, func() bool { return !subscribed(2) }, 30*time.Second, time.Millisecond,
		"a subscription was left behind")
	assert.Eventually(t, func() bool {
		return strings.Count(c.Node(2).Client().ClientList(t.Context()).Val(), "\n") == 1
	}, 30*time.Second, time.Millisecond, "a connection was left behind")
	require.Error(t, q.Nodes.At(2).Err())
	_, err = q.Nodes.At(2).Do(within(t), "PING")
	require.Error(t, err)
	gone(t, q.Drop(2)) // once more
	assert.True(t, h.Valid())
	held(t, q, "other").Release()

	require.NoError(t, q.Connect(2, spare))
	require.Error(t, q.Connect(2, spare), "it is in use")
	require.Eventually(t, func() bool { return has(3) }, 30*time.Second,
		time.Millisecond, "the claim goes on there")
	require.Eventually(t, func() bool { return subscribed(3) }, 30*time.Second, time.Millisecond)
	h.Release()
	require.Eventually(t, func() bool { return !has(3) }, 30*time.Second, time.Millisecond)
	assert.False(t, subscribed(2))
}

// When a hanging node is dropped, its unanswered requests end, and so does the
// release of a hold there.
func TestDroppedNodeEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	q, _ := replaceable(t, c)
	require.NoError(t, c.Node(2).Stop())
	errs := make(chan error, 1)
	go func() {
		_, err := q.Nodes.At(2).Do(context.Background(), "PING")
		errs <- err
	}()
	h := held(t, q, "n")
	gone(t, q.Drop(2))
	select {
	case err := <-errs:
		require.Error(t, err)
	case <-within(t).Done():
		require.Fail(t, "a command goes on")
	}
	h.Release()
	require.NoError(t, h.Released(within(t)))
}

// Close while a node ends, or after that, ends everything.
func TestCloseWithADroppedNode(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	q, spare := replaceable(t, c)
	ended := q.Drop(1)
	require.NoError(t, q.Close(within(t)))
	gone(t, ended)
	require.ErrorIs(t, q.Connect(1, spare), fault.ErrClosed)
}

// A member that joins again gets another number. The observer learns of the end
// of the last connection before it learns of the next one.
func TestNodeBeginsAfterTheLastOneAtItsAddress(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, 1).Node(0)
	q := opened(t, exchangeSettings(), server)
	s := &q.Nodes
	i := s.Size()
	s.Grow(q.Peers, i+2)
	last := s.At(i)
	last.Addr, last.Ended = "127.0.0.1:1", make(chan struct{})
	began := make(chan error, 1)
	go func() { began <- s.Connect(q.Peers, i+1, last.Addr, server.Client(), false) }()
	time.Sleep(100 * time.Millisecond)
	early := len(began) > 0
	close(last.Ended)
	require.NoError(t, <-began)
	require.False(t, early)
}
