package e2e_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// A node whose memory is mostly the tickets of names that are used once is
// named, with the remedy. One whose names are held is not, and a user who may
// not list keys learns nothing.
func TestCheckNamesANodeFullOfRetainedTickets(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q := e2e.Open(t, c, e2e.Timing(time.Second))
	m := mutex.New(q, "used-once")
	require.NoError(t, m.LockContext(t.Context()))
	m.Unlock()
	server := c.Node(0).Client()
	require.True(t, e2e.Eventually(func() bool {
		return server.GetRange(t.Context(), "quorate:{used-once}", 0, 0).Val() == "R"
	}))

	// More names, with the state of this one.
	state := server.Get(t.Context(), "quorate:{used-once}").Val()
	fill := func(state string) {
		t.Helper()
		for from := 0; from < 150_000; from += 5000 { // a longer script makes a busy server refuse other commands
			script := `for i = 1, 5000 do redis.call('SET', 'quorate:{used-once-' .. ARGV[2] + i .. '}', ARGV[1], 'PX', 600000) end`
			err := server.Eval(t.Context(), script, nil, state, from).Err()
			require.ErrorIs(t, err, redis.Nil)
		}
	}
	warnings := func() []string {
		t.Helper()
		r, err := q.Check(t.Context())
		require.NoError(t, err)
		return r.Nodes[0].Warnings
	}
	assert.Empty(t, warnings())
	fill(state)
	if w := warnings(); assert.Len(t, w, 1) {
		assert.Contains(t, w[0], "most of its memory")
		assert.Contains(t, w[0], "members set --retention 30s")
	}
	require.NoError(t, server.Do(t.Context(), "ACL", "SETUSER", "default", "-scan").Err())
	assert.Empty(t, warnings())
	require.NoError(t, server.Do(t.Context(), "ACL", "SETUSER", "default", "+@all").Err())
	assert.NotEmpty(t, warnings())
	fill("S" + state[1:])
	assert.Empty(t, warnings())
}
