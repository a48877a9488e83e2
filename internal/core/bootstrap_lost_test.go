package core

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A set whose nodes have all lost their data comes back by itself, with a guard
// time: clients that know the set record it again, and so do new clients.
func TestSetThatIsLostComesBack(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q, _ := gives(t, c, 3)
	held(t, q, "n").Release()
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Kill())
	}
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Restart())
	}
	held(t, q, "n").Release()
	held(t, opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2)), "n").Release()
	assert.Len(t, recorded(t, c, 0, 1, 2), 1)
}

// All nodes lose their data while a call waits that began when the set was
// known. The call makes them record the set again.
func TestACallThatWaitsRecordsALostSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q, waits := gives(t, c, 3)
	first := held(t, q, "n")
	s, err := waits.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 1, Set: &waits.Set})
	require.NoError(t, err)
	p, err := waits.Begin(t.Context(), s, false, nil)
	require.NoError(t, err)
	got, ctx := make(chan error, 1), within(t)
	go func() {
		h, err := p.Wait(ctx)
		if err == nil {
			h.Release()
		}
		got <- err
	}()
	require.Eventually(t, func() bool { return first.HoldState().Waiters }, time.Minute, time.Millisecond)
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Kill())
	}
	_ = q.Close(context.Background()) // otherwise this client would record the set too
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Restart())
	}
	require.NoError(t, <-got)
	assert.Len(t, recorded(t, c, 0, 1, 2), 1)
}

// If only a minority remembers the set, all members record it again.
func TestSetThatMostHaveLostComesBack(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q, _ := gives(t, c, 3)
	was := recorded(t, c, 0)
	for _, i := range []int{1, 2} {
		require.NoError(t, c.Node(i).Kill())
	}
	for _, i := range []int{1, 2} {
		require.NoError(t, c.Node(i).Restart())
	}
	held(t, q, "n").Release()
	assert.Equal(t, was, recorded(t, c, 0, 1, 2))
}
