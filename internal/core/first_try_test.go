package core

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// The first tries of a process wait until its members are connected. If a
// context cuts a try short, the next try must still wait.
func TestTryWaitsForMembersAfterOneThatWasCutShort(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	set := setup.Defaults()
	set.TTL, set.Guard, set.Retention, set.NodeTimeout = 20*time.Minute, time.Hour, 2*time.Hour, time.Minute
	declared(t, c, set)

	connect := make(chan struct{})
	made := 0
	set.Connect = func(client redis.UniversalClient, cfg transport.Config) (transport.Transport, error) {
		if made++; made > 1 { // the member, which the one of the list has shown
			probe := cfg.Probe
			cfg.Probe = func() []transport.Command { <-connect; return probe() }
		}
		return transport.NewOrdered(client, cfg)
	}
	q, err := New([]redis.UniversalClient{c.Node(0).Client()}, set)
	require.NoError(t, err)
	defer func() { assert.NoError(t, q.Close(context.Background())) }()
	open := sync.OnceFunc(func() { close(connect) })
	defer open()
	q.Until(within(t), q.Members.SetKnown)
	s, err := q.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 1, Set: &q.Set})
	require.NoError(t, err)

	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = q.Acquire(short, s, true, nil)
	require.ErrorIs(t, err, fault.ErrNoQuorum)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, q.Members.CanBegin(true), "no member is connected")
	open()
	h, err := q.Acquire(within(t), s, true, nil)
	require.NoError(t, err)
	h.Release()
}

// A try that its context cuts short reports that even while no set is known.
func TestTryIsCutShortBeforeASetIsKnown(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	connect := make(chan struct{})
	set := setup.Defaults()
	set.NodeTimeout, set.TTL, set.Guard, set.Retention = time.Minute, 20*time.Minute, time.Hour, 2*time.Hour
	set.Connect = func(client redis.UniversalClient, cfg transport.Config) (transport.Transport, error) {
		probe := cfg.Probe
		cfg.Probe = func() []transport.Command { <-connect; return probe() }
		return transport.NewOrdered(client, cfg)
	}
	q, err := New([]redis.UniversalClient{c.Node(0).Client()}, set)
	require.NoError(t, err)
	defer func() { assert.NoError(t, q.Close(context.Background())) }()
	defer close(connect)
	s, err := q.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 1, Set: &q.Set})
	require.NoError(t, err)
	for _, end := range []error{context.DeadlineExceeded, context.Canceled} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if end == context.Canceled {
			cancel()
		}
		_, err = q.Acquire(ctx, s, true, nil)
		cancel()
		require.ErrorIs(t, err, fault.ErrNoQuorum)
		require.ErrorIs(t, err, end)
	}
}
