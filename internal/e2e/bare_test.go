package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// told is an observer of one kind of event.
type told struct {
	kind quorate.EventKind
	to   chan quorate.Event
}

func (o told) Observe(e quorate.Event) {
	if e.Kind == o.kind {
		o.to <- e
	}
}

// All nodes are well, and a hold rests on two of three: the third one never
// votes for it. The next restart may end it, so Check does not allow one, and
// names the hold and its nodes.
func TestHoldWithABareMajority(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	bars := c.Node(2).Client()
	require.NoError(t, bars.Set(t.Context(), "m", "another's", time.Hour).Err())
	events := make(chan quorate.Event, 100)
	q := e2e.Open(t, c, e2e.Timing(2*time.Second), quorate.WithObserver(told{quorate.EventBareHold, events}))
	m, other := mutex.New(q, "m"), mutex.New(q, "well")
	require.NoError(t, m.LockContext(deadline(t)))
	require.NoError(t, other.LockContext(deadline(t)))
	e := e2e.Receive(t, events)
	assert.Equal(t, "m", e.Name)
	assert.Equal(t, m.Lease().Token(), e.Token)

	r, err := q.Check(deadline(t))
	require.NoError(t, err)
	assert.Equal(t, 3, r.Ready)
	assert.False(t, r.MayRestart)
	require.Len(t, r.Bare, 1)
	rests := []string{c.Node(0).Addr(), c.Node(1).Addr()}
	assert.Equal(t, "m", r.Bare[0].Name)
	assert.ElementsMatch(t, rests, r.Bare[0].Nodes)
	for name, bare := range map[string]bool{"m": true, "well": false} {
		i, err := inspect.Name(deadline(t), q, name)
		require.NoError(t, err)
		assert.Equal(t, bare, i.Holders[0].Bare, name)
	}

	require.NoError(t, bars.Del(t.Context(), "m").Err())
	require.True(t, e2e.Eventually(func() bool {
		r, err := q.Check(t.Context())
		return err == nil && r.MayRestart
	}), "the next beat brings the third vote")
	assert.NoError(t, m.Lease().Context().Err())
	assert.Empty(t, events, "once is enough")
}
