package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/members"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
)

// restart restarts a server and waits as "quorate check --wait" does, by a new
// process's connections.
func restart(t *testing.T, node *redistest.Server, list []string, timing quorate.Option) {
	t.Helper()
	require.NoError(t, node.Restart())
	q := e2e.OpenAt(t, list, timing)
	var out, errs output
	j := checkJob{wait: true, timeout: 3 * e2e.Patience, out: &out, errs: &errs}
	require.Equal(t, 0, j.run(t.Context(), q), "%s%s", &out, &errs)
	require.NoError(t, q.Close())
}

// within is a context of a call that must not wait for long: the machine may be
// busy.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*e2e.Patience)
	t.Cleanup(cancel)
	return ctx
}

// Servers that keep no file are restarted one after the other, as the guide
// says. The only clients that are connected all the while hold a lock and wait
// for it. The holder keeps the lock, what Once has recorded stays recorded, and
// afterwards one node may fail.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	rolls(t, false)
}

// So it is if a node is replaced in the middle. All clients have the old list.
func TestRollingRestartAndAReplacement(t *testing.T) {
	t.Parallel()
	rolls(t, true)
}

func rolls(t *testing.T, replaces bool) {
	t.Helper()
	c := redistest.Start(t, 4)
	list, nodes := c.URLs()[:3], []*redistest.Server{c.Node(0), c.Node(1), c.Node(2)}
	timing := e2e.Timing(2 * time.Second) // a machine may stand still for a second
	first := e2e.OpenAt(t, list, timing)
	require.True(t, e2e.Eventually(func() bool { return first.Bootstrap(within(t)) == nil }))
	once.New(first, "migration").Do(func() {})
	require.NoError(t, first.Close())

	late := lateness.Measure(t)
	holder := mutex.New(e2e.OpenAt(t, list, timing), "m")
	require.NoError(t, holder.LockContext(within(t)))
	for _, n := range nodes { // a hold that a waiter keeps from the third node loses its majority with one node
		require.True(t, e2e.Eventually(func() bool { return n.Client().Exists(t.Context(), "m").Val() == 1 }))
	}
	token := holder.Lease().Token()
	served := make(chan uint64, 3)
	for i := range cap(served) {
		waiter := mutex.New(e2e.OpenAt(t, list, timing), "m")
		go func() {
			if waiter.LockContext(within(t)) != nil {
				served <- 0
				return
			}
			served <- waiter.Lease().Token() // before Unlock: after it the next waiter may be first
			waiter.Unlock()
		}()
		require.True(t, e2e.Eventually(func() bool {
			h, err := holder.Holder(t.Context())
			return err == nil && h.Waiters == i+1
		}))
	}
	for i := range nodes {
		restart(t, nodes[i], list, timing)
		if replaces && i == 0 {
			operator := e2e.OpenAt(t, list, timing)
			require.NoError(t, members.Replace(within(t), operator, c.Node(1).Addr(), c.URLs()[3]))
			nodes[1] = c.Node(3)
		}
		if late.Most() < time.Second/2 { // else the machine stood still for a part of the lease
			require.NoError(t, context.Cause(holder.Lease().Context()), "after node %d", i)
		}
	}
	holder.Unlock()
	for range cap(served) {
		next := e2e.Receive(t, served)
		assert.Greater(t, next, token, "each waiter is served, and tokens rise")
		token = next
	}
	require.NoError(t, nodes[2].Stop())
	require.NoError(t, once.New(e2e.OpenAt(t, list, timing),
		"migration").DoContext(within(t), func(context.Context) error {
		t.Error("the migration runs again")
		return nil
	}))
}
