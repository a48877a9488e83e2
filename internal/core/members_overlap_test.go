package core

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// The set becomes known by node 1, and node 0 is known to be a member. If the
// two events overlap, no claim ever hears that node 0 was outside, and what it
// said before counts.
func TestEventsThatOverlap(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		c := redistest.Start(t, 3)
		q := idle(t, c)
		// Another claim is first at the nodes 1 and 2.
		other := idleAt(t, q.set, c)
		require.NoError(t, other.Ready(within(t)))
		first := held(t, other, "name")
		s, err := q.NewSpec(Spec{Name: "name", Weight: 1, Capacity: 1, Set: &q.set})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _, _ = q.Acquire(ctx, s, false, nil) }()
		var a *attempt
		require.Eventually(t, func() bool {
			all := q.attempts.all()
			if len(all) == 0 {
				return false
			}
			a = all[0]
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.claim.Phase() == protocol.Waiting && a.claim.Votes(q.now()) == 1
		}, 10*time.Second, time.Millisecond)

		set := &protocol.Configuration{Stamp: "1.0000000000000000001", Guard: time.Hour, Retention: 2 * time.Hour}
		for i, id := range []string{"a", "b", "c"} {
			set.Members = append(set.Members, protocol.Member{Identity: id, Addr: q.nodes.at(i).addr})
		}
		meets := func(i int) {
			q.members.change(-1, func(m *protocol.Membership) {
				v := m.Met(i, "run", protocol.NodeSet{Phase: protocol.SetRecorded, Identity: set.Members[i].Identity, Config: set})
				assert.Equal(t, protocol.SetFits, v.Fault)
			})
		}
		// Node 0 answers nothing from here on. The claim asks it at once when
		// it is known, and its answer would count.
		require.NoError(t, c.Node(0).Stop())
		if overlap {
			a.mu.Lock() // as if it were the last of many claims, or another event had it
		}
		var both sync.WaitGroup
		for _, i := range []int{1, 0} {
			known := func() bool {
				out := q.members.outside.Load()
				return i == 1 && out == 0b101 || i == 0 && out == 0b100
			}
			both.Go(func() { meets(i) })
			require.Eventually(t, known, 10*time.Second, time.Millisecond)
			if !overlap {
				both.Wait()
			}
		}
		if overlap {
			a.mu.Unlock()
		}
		both.Wait()
		a.mu.Lock()
		assert.Zero(t, a.claim.Votes(q.now()), "overlap %v: a vote of before counts", overlap)
		a.mu.Unlock()
		require.NoError(t, c.Node(0).Cont())
		cancel()
		first.Release()
	}
}

// idleAt is a Quorum of the same nodes that does not reach the first one.
func idleAt(t *testing.T, set Settings, c *redistest.Cluster) *Quorum {
	var clients = clientsWithout(c, 0)
	q, err := New(clients, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	return q
}

func clientsWithout(c *redistest.Cluster, away int) (all []redis.UniversalClient) {
	for i := range 3 {
		all = append(all, redis.NewClient(&redis.Options{Addr: c.Node(i).Addr(), MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if i == away {
				return nil, errors.New("cut off")
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}}))
	}
	return all
}
