package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
)

// lacking is what is said where it is not the server's own words.
var lacking = map[string]string{
	"+info": "this user may not run INFO",
	// No waiter learns that it is its turn.
	"+subscribe": "held by another client", "+publish": "held by another client",
	"&NAME:push:*": "held by another client",
	"+scan":        "has not been repaired", // a server that lost its data
	"+hdel":        "is damaged",            // half of a leave has been done
}

// without returns the rights but for some.
func without(rights []string, lacks ...string) []string {
	return slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return slices.Contains(lacks, r) })
}

// A managed server may refuse CONFIG and CLIENT. Everything works without them.
// Check does not claim what it cannot know, and what must be on a disk is
// refused.
func TestFewerRights(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3, redistest.WithAOF("everysec"))
	fewerRights(t, c)
}

func fewerRights(t *testing.T, c *redistest.Cluster) {
	steps := slices.DeleteFunc(slices.Clone(everything),
		func(s step) bool { return s.what == "check" || s.what == "once" || s.what == "heal" })
	for name, lacks := range map[string][]string{
		"none": useful, "all": nil,
	} {
		u := newTenant(t, c, name, without(slices.Concat(needed, useful), lacks...))
		q, err := quorate.Connect(deadline(t), u.urls("secret"), u.options()...)
		require.NoError(t, err, name)
		config := !slices.Contains(lacks, "+config|get")
		assert.NoError(t, u.run(deadline(t), q, steps), name)
		err = once.New(q, u.job("durable"), once.WithDurable()).DoContext(deadline(t),
			func(context.Context) error { return nil })
		assert.NoError(t, err, name)
		assert.NoError(t, u.onceWith(deadline(t), q), name)
		assert.NoError(t, u.reconnect(deadline(t), q), name)

		r, err := q.Check(deadline(t))
		assert.NoError(t, err, name)
		for _, n := range r.Nodes {
			assert.NoError(t, n.Err, name)
			assert.True(t, n.Version != "" && n.Role != "" && n.Eviction != "" && n.AOF, name)
			assert.Equal(t, config, n.Fsync == "everysec", name)
		}
		assert.NoError(t, q.Close(), name)
	}
}

// A right that is lacking inside a script is permanent as well: no lock waits
// for it. Bootstrap of a set that is recorded changes nothing, and needs none.
func TestRightLackingInAScript(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	u := newTenant(t, c, "app", needed)
	q := e2e.OpenAt(t, u.urls("secret"), u.options()...)
	require.NoError(t, q.Bootstrap(deadline(t)))
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Do(t.Context(), "ACL", "SETUSER", "app", "-set").Err())
	}
	m := mutex.New(q, u.job("m"))
	for _, err := range []error{m.LockContext(deadline(t)), m.TryLockContext(deadline(t))} {
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		assert.True(t, slices.ContainsFunc(refused,
			func(s string) bool { return strings.Contains(err.Error(), s) }), "%v", err)
	}
}

// A node whose user lacks a right that only a release needs is not ready. Without
// that each released name stays taken for a lease, and nothing says why.
func TestRightLackingForARelease(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(2*time.Second))
	right := func(rule string) {
		for i := range c.Len() {
			require.NoError(t, c.Node(i).Client().Do(t.Context(), "ACL", "SETUSER", "default", rule).Err())
		}
	}
	right("-setrange")
	r, err := q.Check(deadline(t))
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.Zero(t, r.Ready)
	require.ErrorContains(t, r.Nodes[0].Refuses, "refuses new locks: cannot release one: ")
	require.ErrorContains(t, r.Nodes[0].Refuses, "grant its user the rights in docs/reference/security.md")
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	require.ErrorContains(t, m.UnlockContext(deadline(t)),
		"grant its user the rights in docs/reference/security.md")
	right("+setrange")
	require.True(t, e2e.Eventually(func() bool {
		r, err := q.Check(t.Context())
		return err == nil && r.Ready == 3
	}))
}

// Bootstrap of brand-new nodes names the right that is lacking, and waits for
// nothing.
func TestBootstrapWithoutARight(t *testing.T) {
	t.Parallel()
	for i, right := range []string{"~NAME:{*", "+evalsha", "+time", "+getrange", "+exists", "+set", "+del"} {
		c := redistest.Start(t, 1)
		u := newTenant(t, c, fmt.Sprint("tenant", i), without(needed, right))
		q := e2e.OpenAt(t, u.urls("secret"), u.options()...)
		err := q.Bootstrap(deadline(t))
		if right == "+del" && err == nil { // it is needed later on
			continue
		}
		require.ErrorIs(t, err, quorate.ErrNoQuorum, right)
		require.NotErrorIs(t, err, context.DeadlineExceeded, right)
		assert.ErrorContains(t, err, c.Node(0).Addr(), right)
		assert.True(t, slices.ContainsFunc(refused,
			func(s string) bool { return strings.Contains(err.Error(), s) }), "without %s: %v", right, err)
	}
}
