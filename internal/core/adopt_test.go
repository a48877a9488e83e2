package core

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// recordedBy has an operator record the set that q uses, and waits until q
// knows each member.
func recordedBy(t *testing.T, operator, q *Quorum) {
	t.Helper()
	require.NoError(t, operator.BootstrapSet(within(t)))
	for _, n := range q.nodes.all() {
		n.link.Reconnect(errors.New("as a refusal does"))
	}
	require.Eventually(t, func() bool { return q.members.config.Load() != nil && q.members.outside.Load() == 0 }, time.Minute, time.Millisecond)
}

// The nodes were restarted, one after the other, while a client without a set
// was running. Then the set is recorded. A hold that began after the restarts
// stays.
func TestHoldOutlastsTheRecordOfRestartedNodes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	set := Defaults()
	set.Logger = slog.New(slog.DiscardHandler)
	set.TTL, set.Guard, set.Retention = 10*time.Minute, 25*time.Minute, time.Hour
	q := declared(t, c, set)
	for i := range 3 {
		require.NoError(t, c.Node(i).Restart())
	}
	require.Eventually(t, func() bool { return q.BootstrapUnrecorded(within(t)) == nil }, time.Minute, 10*time.Millisecond)
	mine := held(t, q, "n")
	recordedBy(t, opened(t, set, c.Node(0), c.Node(1), c.Node(2)), q)
	time.Sleep(100 * time.Millisecond)
	assert.True(t, mine.Valid(), "the hold is lost though nothing has failed")
	mine.Release()
}

// The user of the client may not ask INFO, so it is not known which run of a
// server an address reaches.
func TestHoldOutlastsTheRecordWhereRunsAreNotKnown(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	set := Defaults()
	set.Logger = slog.New(slog.DiscardHandler)
	set.TTL, set.Guard, set.Retention = 10*time.Minute, 25*time.Minute, time.Hour
	var clients []redis.UniversalClient
	for i := range 3 {
		require.NoError(t, c.Node(i).Client().ACLSetUser(t.Context(), "app", "on", "nopass", "~*", "&*", "+@all", "-info").Err())
		o := *c.Node(i).Client().Options()
		o.Username, o.Password = "app", "x"
		clients = append(clients, redis.NewClient(&o))
	}
	q, err := New(clients, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	require.NoError(t, q.BootstrapUnrecorded(within(t)))
	mine := held(t, q, "n")
	recordedBy(t, opened(t, set, c.Node(0), c.Node(1), c.Node(2)), q)
	time.Sleep(100 * time.Millisecond)
	assert.True(t, mine.Valid(), "the hold is lost though nothing has failed")
	mine.Release()
}
