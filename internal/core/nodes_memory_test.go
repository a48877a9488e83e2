package core_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/memory"
	"github.com/quorate/quorate/internal/transport"
)

// inMemory is a Quorum of three nodes in memory. Their clients go by the nodes'
// addresses.
func inMemory(t *testing.T) (*core.Quorum, memory.Nodes, []redis.UniversalClient, setup.Settings) {
	t.Helper()
	nodes := memory.NewNodes(3)
	clients := nodes.Clients(t)
	set := setup.Defaults()
	set.TTL, set.Guard = time.Minute, 3*time.Minute // so that a busy machine ends no hold
	set.Connect = func(client redis.UniversalClient, cfg transport.Config) (transport.Transport, error) {
		for i, c := range clients {
			if c == client {
				return memory.NewTransport(nodes[i], cfg), nil
			}
		}
		return transport.NewOrdered(client, cfg)
	}
	q, err := core.New(clients, set)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close(context.Background())) })
	require.NoError(t, q.Bootstrap(soon(t)))
	require.Eventually(t, q.Connected, time.Minute, time.Millisecond)
	return q, nodes, clients, set
}

// Requests that wait for room at a node that is dropped are answered, and
// nothing waits for it any more.
func TestDroppedNodeAnswersWhatWaitsForRoom(t *testing.T) {
	t.Parallel()
	q, nodes, _, set := inMemory(t)
	nodes[2].Freeze()
	defer nodes[2].Thaw()
	var holds []core.Hold
	for i := range memory.Room + 500 {
		s, err := q.NewSpec(core.Spec{Name: strconv.Itoa(i), Weight: 1, Capacity: 1, Set: &set})
		require.NoError(t, err)
		h, err := q.Acquire(soon(t), s, false, nil)
		require.NoError(t, err)
		holds = append(holds, h)
	}
	require.True(t, q.Waits(2))
	select {
	case <-q.Drop(2):
	case <-soon(t).Done():
		require.Fail(t, "the node has not ended")
	}
	assert.False(t, q.Waits(2))
	for _, h := range holds {
		assert.True(t, h.Valid())
		h.Release()
	}
	for _, h := range holds {
		require.NoError(t, h.Released(soon(t)))
	}
	require.Eventually(t, func() bool { return nodes[0].Size()+nodes[1].Size() == 0 },
		time.Minute, time.Millisecond)
}

// Nodes come and go while locks are in use. No hold is lost, since a majority
// stays.
func TestNodesComeAndGoUnderLoad(t *testing.T) {
	t.Parallel()
	q, nodes, clients, set := inMemory(t)
	kept, err := q.NewSpec(core.Spec{Name: "kept", Weight: 1, Capacity: 1, Set: &set})
	require.NoError(t, err)
	h, err := q.Acquire(soon(t), kept, false, nil)
	require.NoError(t, err)
	w := q.Register(kept).Watch()
	defer w.Close()
	over := make(chan struct{})
	var users sync.WaitGroup
	for i := range 8 {
		users.Go(func() {
			for k := 0; ; k++ {
				// Another name each time: a node that comes back has the claims
				// whose releases did not reach it.
				s, err := q.NewSpec(core.Spec{Name: strconv.Itoa(i) + "." + strconv.Itoa(k), Weight: 1,
					Capacity: 1, ShortHold: true, Set: &set})
				if err == nil {
					h, err := q.Acquire(soon(t), s, false, nil)
					if !assert.NoError(t, err) {
						return
					}
					h.Release()
				}
				assert.NoError(t, err)
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	for i := range 60 {
		q.Drop(i % 3)
		require.NoError(t, q.Connect(i%3, clients[i%3]))
		require.NoError(t, q.Ready(soon(t)))
		require.Eventually(t, func() bool { return nodes[i%3].Size() > 0 }, time.Minute,
			time.Millisecond, "the hold is not there")
	}
	close(over)
	users.Wait()
	assert.True(t, h.Valid())
	h.Release()
}
