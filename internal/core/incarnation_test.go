package core

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// Two servers whose markers have one incarnation, and name each its own run,
// both vote after a while. A replica has such a marker if a script had made it,
// which cannot know the run, and the next client named the replica's own.
func TestCopiedIncarnationOfAKnownRun(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	set := Defaults()
	var clients []redis.UniversalClient
	for i := range c.Len() {
		r := c.Node(i).Client()
		now, err := r.Time(t.Context()).Result()
		require.NoError(t, err)
		info, err := r.Info(t.Context(), "server").Result()
		require.NoError(t, err)
		_, run, _ := strings.Cut(info, "run_id:")
		run, _, _ = strings.Cut(run, "\r")
		marker := fmt.Sprintf("%d %d %s %d %d", 7+i/2, now.Add(-time.Hour).UnixMilli(), run, set.Guard.Milliseconds(), set.Retention.Milliseconds())
		require.NoError(t, r.Set(t.Context(), script.MarkerKey(set.Prefix), marker, 0).Err())
		clients = append(clients, r)
	}
	q, err := New(clients, set)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close(context.Background())) })
	require.Eventually(t, func() bool {
		for i, n := range q.nodes.all() {
			if n.err() != nil || q.driver.client.Voting(i) == 0 {
				_, _ = n.marker(t.Context(), q.members.markerKey()) // each answer has it ask again
				return false
			}
		}
		return true
	}, 20*time.Second, time.Millisecond)
	assert.NotEqual(t, q.driver.client.Voting(0), q.driver.client.Voting(1))
}
