package e2e_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// A server in cluster mode refuses requests with keys of several slots. Every
// call says that at once, and what to do, whether the server has slots and
// whether the user may ask for INFO.
func TestClusterModeIsRefused(t *testing.T) {
	t.Parallel()
	for _, slots := range []string{"no slots", "all slots"} {
		for _, user := range []string{"default", "blind"} {
			t.Run(slots+", user "+user, func(t *testing.T) {
				t.Parallel()
				node := redistest.Start(t, 1, redistest.WithArgs("--cluster-enabled", "yes")).Node(0)
				if slots == "all slots" {
					serveAllSlots(t, node)
				}
				if user == "blind" {
					require.NoError(t, node.Client().Do(t.Context(), "ACL", "SETUSER", "blind", "on", ">secret",
						"~*", "&*", "+@all", "-info").Err())
				}
				refusesClusterMode(t, strings.Replace(node.URL(), "://",
					map[string]string{"default": "://", "blind": "://blind:secret@"}[user], 1))
			})
		}
	}
}

// serveAllSlots makes a server the only master of its cluster.
func serveAllSlots(t *testing.T, node *redistest.Server) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: node.Addr()})
	defer func() { _ = c.Close() }()
	slots := make([]int, 16384) // Redis before 7.0 takes no range
	for i := range slots {
		slots[i] = i
	}
	require.NoError(t, c.ClusterAddSlots(t.Context(), slots...).Err())
	require.True(t, e2e.Eventually(func() bool {
		info, err := c.ClusterInfo(t.Context()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	}))
}

func refusesClusterMode(t *testing.T, url string) {
	ctx := deadline(t)
	var log e2e.Log
	opts := []quorate.Option{e2e.Timing(time.Second), log.Option()}
	_, err := quorate.Connect(ctx, []string{url}, opts...)
	says := func(what string, err error) {
		t.Helper()
		require.NoError(t, ctx.Err(), what)
		assert.ErrorIs(t, err, quorate.ErrNoQuorum, what)
		assert.NotErrorIs(t, err, context.DeadlineExceeded, what)
		assert.ErrorContains(t, err, "one server of a cluster", what)
		assert.ErrorContains(t, err, "cluster-enabled no", what)
	}
	says("Connect", err)

	q := e2e.OpenAt(t, []string{url}, opts...)
	r, err := q.Check(ctx)
	says("Check", err)
	require.Len(t, r.Nodes, 1)
	assert.ErrorContains(t, r.Nodes[0].Err, "one server of a cluster")
	says("Bootstrap", q.Bootstrap(ctx))

	m := mutex.New(q, "m")
	says("LockContext", m.LockContext(ctx))
	says("TryLockContext", m.TryLockContext(ctx))
	_, err = m.Holder(ctx)
	says("Holder", err)
	rw := rwmutex.New(q, "rw")
	says("RLockContext", rw.RLockContext(ctx))
	says("rwmutex LockContext", rw.LockContext(ctx))
	sem := semaphore.NewWeighted(q, "s", 2)
	says("Acquire", sem.Acquire(ctx, 1))
	says("Resize", sem.Resize(ctx, 3))
	o := once.New(q, "o")
	says("DoContext", o.DoContext(ctx, func(context.Context) error { return errors.New("it ran") }))
	_, err = o.Status(ctx)
	says("Status", err)
	e := leader.New(q, "l", leader.WithID("me"))
	says("Campaign", e.Campaign(ctx, "me"))
	_, err = e.Leader(ctx)
	says("Leader", err)

	go m.Lock() // cannot return an error, so the log says it
	require.True(t, e2e.Eventually(func() bool {
		lines := log.Lines("keeps trying")
		return len(lines) > 0 && strings.Contains(lines[0], "one server of a cluster")
	}))
	require.NoError(t, q.Close())
	require.True(t, e2e.Eventually(func() bool { return len(log.Lines("waits forever")) > 0 }))
}
