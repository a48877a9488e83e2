package localqueue

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// lateContext ends just after a call has begun to wait for the nodes, but tells
// so only when it is asked.
type lateContext struct {
	watchedContext
	over atomic.Bool
}

func (c *lateContext) Err() error {
	if c.over.Load() {
		return context.Canceled
	}
	return nil
}

// watchedContext calls waits when a call begins to wait for its end.
type watchedContext struct {
	context.Context
	waits func()
}

func (c *watchedContext) Done() <-chan struct{} {
	c.waits()
	return c.Context.Done()
}

// The nodes refuse a claim permanently, and its caller's context ends at the same
// time. The next caller makes an attempt of its own: there is no place at the
// nodes to take over.
func TestNextCallerDoesNotWaitForAnAttemptThatHasEnded(t *testing.T) {
	t.Parallel()
	qs := queues(t, 1)
	other := New(qs[0].quorum, qs[0].write.Set, core.Spec{Name: "n", Weight: 3, Capacity: 3}, core.Spec{})
	require.NoError(t, other.Lock(t.Context(), Write, false))

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	next := make(chan error, 1)
	late := &lateContext{watchedContext: watchedContext{Context: ctx}}
	late.waits = func() {
		if late.over.Swap(true) {
			return
		}
		queued := make(chan struct{}, 8)
		go func() {
			next <- qs[0].Lock(&watchedContext{ctx, func() { queued <- struct{}{} }}, Write, false)
		}()
		<-queued
	}
	for !late.over.Load() { // else the nodes have answered before the call began to wait
		require.ErrorIs(t, qs[0].Lock(late, Write, false), fault.ErrInvalid)
	}
	assert.ErrorIs(t, <-next, fault.ErrInvalid)
	assert.NoError(t, ctx.Err(), "the next caller waited until its context ended")
}
