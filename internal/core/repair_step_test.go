package core

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/setup"
)

// leavingHandler ends the goroutine that logs that a number of permits could
// not be brought.
type leavingHandler struct {
	slog.Handler
	ended *atomic.Int32
}

func (h leavingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h leavingHandler) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "Resize") {
		h.ended.Add(1)
		runtime.Goexit()
	}
	return nil
}

// An observer or a logger may end the goroutine in which it is called, as a
// test does that fails. The step has ended then, and a repair does not wait for
// it.
func TestRepairStepWhoseGoroutineEnds(t *testing.T) {
	t.Parallel()
	var ended atomic.Int32
	set := setup.Defaults()
	set.NodeTimeout, set.Logger = 10*time.Millisecond, slog.New(leavingHandler{slog.DiscardHandler, &ended})
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = client.Close() })
	q, err := New([]redis.UniversalClient{client}, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	counting(t, q)
	assert.Eventually(t, func() bool {
		q.driver.carryOut(q.driver.client.MissedResize(q.now(), "n")) // while the first step is under way no second one begins
		return ended.Load() > 1
	}, 20*time.Second, time.Millisecond)
}
