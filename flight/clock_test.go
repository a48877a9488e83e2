package flight_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/flight"
	"github.com/quorate/quorate/internal/testkit/memory"
)

// All clocks were set back by some seconds since the load. Its result is not
// fresh for so much longer.
func TestClocksThatAreSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := memory.NewNodes(3)
		q, err := quorate.New(nodes.Clients(t), nodes.Option())
		require.NoError(t, err)
		defer func() { _ = q.Close() }()
		require.NoError(t, q.Bootstrap(t.Context()))
		clocks := func(ahead time.Duration) {
			for _, n := range nodes {
				n.SetClock(ahead)
			}
			time.Sleep(5 * time.Second) // a beat
		}
		loads := 0
		do := func() int {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			v, err := flight.New[int](q, "f:").Do(ctx, "k",
				0, func(context.Context) (int, error) { loads++; return loads, nil })
			require.NoError(t, err)
			return v
		}
		clocks(9 * time.Second)
		assert.Equal(t, 1, do())
		clocks(0)
		assert.Equal(t, 2, do())
	})
}

// The skew by which a result is fresh is that of the set, whatever the clients
// were made with: else one of them loads again what another has just loaded.
func TestSkewIsThatOfTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := memory.NewNodes(3)
		open := func(opts ...quorate.Option) *quorate.Quorum {
			q, err := quorate.New(nodes.Clients(t), append(opts, nodes.Option())...)
			require.NoError(t, err)
			return q
		}
		first := open(quorate.WithSkew(10*time.Second), quorate.WithGuard(40*time.Second))
		defer func() { _ = first.Close() }()
		require.NoError(t, first.Bootstrap(t.Context()))
		second := open(quorate.WithSkew(time.Millisecond))
		defer func() { _ = second.Close() }()
		clocks := func(ahead time.Duration) {
			for _, n := range nodes {
				n.SetClock(ahead)
			}
			time.Sleep(5 * time.Second) // a beat
		}
		loads := 0
		do := func(q *quorate.Quorum) int {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			v, err := flight.New[int](q, "f:").Do(ctx, "k", time.Hour,
				func(context.Context) (int, error) { loads++; return loads, nil })
			require.NoError(t, err)
			return v
		}
		clocks(9500 * time.Millisecond)
		assert.Equal(t, 1, do(first))
		clocks(0)
		assert.Equal(t, 1, do(second))
	})
}
