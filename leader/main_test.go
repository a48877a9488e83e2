package leader_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

func TestMain(m *testing.M) { e2e.MainWithNodes(m) }

// quiet is a ttl so long that nothing is asked again and nothing ends while a
// test lasts: what is heard then, has been pushed.
const quiet = time.Minute

// cluster starts three servers, and sees in the end that nothing is left on
// them.
func cluster(t *testing.T) *redistest.Cluster {
	t.Helper()
	c := redistest.Start(t, 3)
	t.Cleanup(func() { e2e.Clean(t, c) })
	return c
}

// nodes starts three nodes in the test's bubble, and sees in the end that they
// have no leader.
func nodes(t *testing.T) *quoratetest.Cluster {
	t.Helper()
	c := quoratetest.New(t, 3)
	t.Cleanup(func() { assert.Empty(t, c.Holders("e"), "when all Quorums are closed") })
	return c
}

// fleet returns participants of one election, each with a Quorum of its own,
// and a mutex of the same name to see the waiters.
func fleet(t *testing.T, c *quoratetest.Cluster, timing quorate.Option,
	ids ...string) ([]*leader.Election, *mutex.Mutex) {
	t.Helper()
	var all []*leader.Election
	for _, id := range ids {
		all = append(all, leader.New(c.Quorum(timing), "e", leader.WithID(id)))
	}
	return all, mutex.New(c.Quorum(timing), "e")
}

// waiters waits until so many are in line behind the leader.
func waiters(t *testing.T, m *mutex.Mutex, n int) {
	t.Helper()
	var h quorate.Holder
	var err error
	require.True(t, e2e.Eventually(func() bool {
		h, err = m.Holder(t.Context())
		return err == nil && h.Waiters == n
	}), "%+v, %v", h, err)
}

// soon is a context that ends when a test has been patient enough.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), e2e.Patience)
	t.Cleanup(cancel)
	return ctx
}

// campaign calls Campaign in a goroutine.
func campaign(ctx context.Context, e *leader.Election, value string) <-chan error {
	done := make(chan error, 1)
	go func() { done <- e.Campaign(ctx, value) }()
	return done
}

// freeze has the first n nodes stand still, and returns what lets them go on.
func freeze(c *quoratetest.Cluster, n int) (thaw func()) {
	delay := func(d time.Duration) {
		for i := range n {
			c.Delay(i, d)
		}
	}
	delay(time.Hour)
	return func() { delay(0) }
}
