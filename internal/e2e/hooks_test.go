package e2e_test

import (
	"context"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// tracer counts what a tracing hook would record.
type tracer struct {
	mu    sync.Mutex
	calls map[string]int
}

func (h *tracer) DialHook(next redis.DialHook) redis.DialHook {
	return next
}

func (h *tracer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *tracer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.calls[cmd.Name()]++
		return err
	}
}

// The hooks of the clients given to New see each request of a lock at each
// node.
func TestHooksSeeLocks(t *testing.T) {
	t.Parallel()
	nodes := redistest.Start(t, 3)
	h := &tracer{calls: map[string]int{}}
	var clients []redis.UniversalClient
	for i := range 3 {
		c := redis.NewClient(&redis.Options{Addr: nodes.Node(i).Addr()})
		t.Cleanup(func() { c.Close() })
		c.AddHook(h)
		clients = append(clients, c)
	}
	q, err := quorate.New(clients)
	require.NoError(t, err)
	require.NoError(t, q.Bootstrap(t.Context()))
	m := mutex.New(q, "job")
	require.NoError(t, m.LockContext(t.Context()))
	require.NoError(t, m.UnlockContext(t.Context()))
	require.NoError(t, q.Close())
	h.mu.Lock()
	defer h.mu.Unlock()
	assert.GreaterOrEqual(t, h.calls["ping"], 3)
	assert.GreaterOrEqual(t, h.calls["evalsha"], 6, "a join and a leave at each node")
}
