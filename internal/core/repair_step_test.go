package core

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leavingHandler ends the goroutine that logs that a number of permits could not be brought.
type leavingHandler struct{ slog.Handler }

func (h leavingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h leavingHandler) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "Resize") {
		runtime.Goexit()
	}
	return nil
}

// An observer or a logger may end the goroutine in which it is called, as a test does
// that fails. The step has ended then, and a repair does not wait for it.
func TestRepairStepWhoseGoroutineEnds(t *testing.T) {
	t.Parallel()
	set := Defaults()
	set.NodeTimeout, set.Logger = 10*time.Millisecond, slog.New(leavingHandler{slog.DiscardHandler})
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = client.Close() })
	q, err := New([]redis.UniversalClient{client}, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	s, err := q.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 2, Counting: true, Set: &set})
	require.NoError(t, err)
	q.repairs.missedResize(s)
	require.NotNil(t, q.repairs.number("n"))
	assert.Eventually(t, func() bool { return q.repairs.number("n") == nil }, 20*time.Second, time.Millisecond)
}
