package core

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// reads is a link that counts how often a caller wants to read.
type reads struct {
	transport.Transport
	n *atomic.Int64
}

func (r reads) Read(until <-chan struct{}) {
	r.n.Add(1)
	r.Transport.Read(until)
}

// If the set has one node, a caller reads its own answers: of a claim, its
// release, its renewal and a record. With more nodes it cannot.
func TestCallerReadsItsOwnAnswers(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 3} {
		var n atomic.Int64
		set := exchangeSettings()
		set.Connect = func(client redis.UniversalClient, cfg transport.Config) (transport.Transport, error) {
			l, err := transport.NewOrdered(client, cfg)
			return reads{l, &n}, err
		}
		c := redistest.Start(t, size)
		var servers []*redistest.Server
		for i := range size {
			servers = append(servers, c.Node(i))
		}
		q := opened(t, set, servers...)
		s, err := q.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 1, Set: &q.Set})
		require.NoError(t, err)
		n.Store(0)
		for range 100 {
			h, err := q.Acquire(t.Context(), s, false, nil)
			require.NoError(t, err)
			_ = h.Renew(t.Context())
			h.Release()
			_ = h.Released(t.Context())
		}
		if size > 1 {
			require.Zero(t, n.Load())
		} else {
			require.Positive(t, n.Load())
		}
	}
}

// A caller that waits for a push gets it while another one reads for itself.
func TestPushBesideACallerThatReads(t *testing.T) {
	t.Parallel()
	q := opened(t, exchangeSettings(), redistest.Start(t, 1).Node(0))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	spec := func(name string) *Spec {
		s, err := q.NewSpec(Spec{Name: name, Weight: 1, Capacity: 1, Set: &q.Set})
		require.NoError(t, err)
		return s
	}
	one, other := spec("one"), spec("other")
	h, err := q.Acquire(ctx, one, false, nil)
	require.NoError(t, err)
	for range 20 {
		next := make(chan Hold)
		go func() {
			h, err := q.Acquire(ctx, one, false, nil)
			if err != nil {
				h = none
			}
			next <- h
		}()
		for range 40 {
			o, err := q.Acquire(ctx, other, false, nil)
			require.NoError(t, err)
			o.Release()
			_ = o.Released(ctx) // in time or not
		}
		require.Eventually(t, func() bool { return q.waiting.Load() == 1 }, 20*time.Second, time.Millisecond)
		h.Release()
		h = <-next
		require.NotEqual(t, none, h)
	}
	h.Release()
	require.Zero(t, q.waiting.Load())
}
