package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
)

// restart restarts a server and waits as "quorate check --wait" does, by a new process's
// connections.
func restart(t *testing.T, c *redistest.Cluster, node int, timing quorate.Option) {
	t.Helper()
	require.NoError(t, c.Node(node).Restart())
	q := e2e.OpenAt(t, c.URLs(), timing)
	var out, errs output
	j := checkJob{wait: true, timeout: e2e.Patience, out: &out, errs: &errs}
	require.Equal(t, 0, j.run(t.Context(), q), "%s%s", &out, &errs)
	require.NoError(t, q.Close())
}

// within is a context of a call that must not wait for long.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), e2e.Patience)
	t.Cleanup(cancel)
	return ctx
}

// Servers that keep no file are restarted one after the other, as the guide says. The only
// clients that are connected all the while hold a lock and wait for it. The holder keeps the
// lock, what Once has recorded stays recorded, and afterwards one node may fail.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	timing := e2e.Timing(2 * time.Second) // a machine may stand still for a second
	first := e2e.Open(t, c, timing)
	once.New(first, "migration").Do(func() {})
	require.NoError(t, first.Close())

	holder := mutex.New(e2e.OpenAt(t, c.URLs(), timing), "m")
	require.NoError(t, holder.LockContext(within(t)))
	for i := range c.Len() { // a hold that a waiter keeps from the third node loses its majority with one node
		require.True(t, e2e.Eventually(func() bool { return c.Node(i).Client().Exists(t.Context(), "m").Val() == 1 }))
	}
	served := make(chan struct{}, 3)
	for i := range cap(served) {
		waiter := mutex.New(e2e.OpenAt(t, c.URLs(), timing), "m")
		go func() {
			if waiter.LockContext(within(t)) == nil {
				waiter.Unlock()
			}
			served <- struct{}{}
		}()
		require.True(t, e2e.Eventually(func() bool {
			h, err := holder.Holder(t.Context())
			return err == nil && h.Waiters == i+1
		}))
	}
	for i := range c.Len() {
		restart(t, c, i, timing)
		require.NoError(t, context.Cause(holder.Lease().Context()), "after node %d", i)
	}
	holder.Unlock()
	for range cap(served) {
		e2e.Receive(t, served)
	}
	require.NoError(t, c.Node(1).Stop())
	require.NoError(t, once.New(e2e.OpenAt(t, c.URLs(), timing), "migration").DoContext(within(t), func(context.Context) error {
		t.Error("the migration runs again")
		return nil
	}))
}
