package core

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// What others have recorded is listed once the node's guard time is over, and
// not before: until then it may become more that rests on what the node forgot.
func TestHealingWaitsForTheGuardTime(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t, 1).Node(0).Client()
	q, err := New([]redis.UniversalClient{client}, Defaults())
	require.NoError(t, err)
	defer func() { assert.NoError(t, q.Close(context.Background())) }()
	q.nodes[0].tried(t.Context())
	q.Healed(t.Context()) // from here on that one sleeps until the guard time is over
	h := &healer{q: q, node: q.nodes[0]}
	for _, tc := range []struct {
		inc   string
		age   time.Duration
		whole string
		done  bool
		waits bool
	}{
		{inc: "7", age: q.set.Guard / 2, waits: true},
		{inc: "7", age: q.set.Guard + time.Second},
		{inc: "7", age: q.set.Guard + time.Second, whole: " w", done: true},
		{inc: "8", age: q.set.Guard / 2, waits: true}, // it has forgotten again
	} {
		born := strconv.FormatInt(time.Now().Add(-tc.age).UnixMilli(), 10)
		inc, err := strconv.ParseUint(tc.inc, 10, 64)
		require.NoError(t, err)
		q.incarnations.votes[0].Store(inc) // or its answers would not count
		require.NoError(t, client.Set(t.Context(), script.MarkerKey(q.set.Prefix), tc.inc+" "+born+" run 0 0"+tc.whole, 0).Err())
		done, err := h.over(t.Context())
		assert.Equal(t, tc.done, done, "%+v", tc)
		_, waits := errors.AsType[*RecoveringError](err)
		assert.Equal(t, tc.waits, waits, "%+v: %v", tc, err)
	}
}
