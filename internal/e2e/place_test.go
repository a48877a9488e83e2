package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
)

// One server hangs for 1.5 ttl, and goes on with its data. Each name has a
// holder, and a waiter in another client. Then another server hangs: every hold
// must survive, as two servers have been well throughout. A leader with a
// candidate behind it is such a name, too.
func TestTwoShortOutages(t *testing.T) {
	t.Parallel()
	const ttl, names = 2 * time.Second, 6
	c := redistest.Start(t, 3)
	first, second := e2e.Open(t, c, e2e.Timing(ttl)), e2e.OpenAt(t, c.URLs(), e2e.Timing(ttl))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	// A claim that gets to a node before the holder's own join has the holder keep
	// a bare majority from the start.
	everywhere := func(name string) {
		require.True(t, e2e.Eventually(func() bool {
			r, err := inspect.Name(t.Context(), second, name)
			return err == nil && len(r.Holders) == 1 && r.Holders[0].Votes == c.Len()
		}), "%s is held at all nodes", name)
	}
	held := map[string]quorate.Lease{}
	for i := range names {
		name := fmt.Sprintf("m%d", i)
		m := mutex.New(first, name)
		require.NoError(t, m.LockContext(deadline(t)))
		held[name] = m.Lease()
		everywhere(name)
		go func() { _ = mutex.New(second, name).LockContext(ctx) }()
	}
	leads := make(chan quorate.Lease, 1)
	campaign := func(q *quorate.Quorum, leads chan<- quorate.Lease) {
		_ = leader.New(q, "leader").Run(ctx,
			leader.Callbacks{OnStartedLeading: func(ctx context.Context, l quorate.Lease) {
				leads <- l
				<-ctx.Done()
			}})
	}
	go campaign(first, leads)
	held["leader"] = e2e.Receive(t, leads)
	everywhere("leader")
	go campaign(second, make(chan quorate.Lease, 1))
	queued := func(node int) func() bool {
		return func() bool {
			for name := range held {
				r, err := inspect.Name(t.Context(), second, name)
				if err != nil || r.Nodes[node].Err != nil || r.Nodes[node].Queued != 2 {
					return false
				}
			}
			return true
		}
	}
	for node := range c.Len() {
		require.True(t, e2e.Eventually(queued(node)))
	}

	stopped := time.Now()
	require.NoError(t, c.Node(1).Stop())
	require.True(t, e2e.Eventually(func() bool { return time.Since(stopped) > 3*ttl/2 }))
	require.NoError(t, c.Node(1).Cont())
	require.True(t, e2e.Eventually(queued(1)), "all are back at the node that hung")

	require.NoError(t, c.Node(0).Stop())
	stopped = time.Now()
	for name, l := range held {
		require.True(t, e2e.Eventually(func() bool {
			return l.Context().Err() != nil || l.ValidUntil().After(stopped.Add(5*ttl/4))
		}))
		assert.NoError(t, context.Cause(l.Context()), "%s is lost", name)
	}
	require.NoError(t, c.Node(0).Cont())
}
