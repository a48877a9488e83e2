package once_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/once"
)

// An earlier run has reached one node alone, and that node is away while the
// next run works for longer than the others keep its promise. The earlier run
// does not count when the node is back.
func TestRunThatOutlastsItsPromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { assert.Equal(t, once.Running, outlasts(t)) })
}

// outlasts returns the state of the second run at the end of its work.
func outlasts(t *testing.T) (seen once.State) {
	c := nodes(t)
	qs := bubbled(c, 3, e2e.Timing(time.Minute))
	a, b, reader := once.New(qs[0], "o"), once.New(qs[1], "o"), once.New(qs[2], "o")
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, a.DoContext(ctx, func(context.Context) error {
		c.Partition(qs[0], 1, 2)
		cancel()
		return nil
	}), once.ErrNotRecorded)
	_ = qs[0].Close() // it cannot release its claim everywhere
	c.Partition(qs[1], 0)
	require.NoError(t, b.DoContext(t.Context(), func(context.Context) error {
		time.Sleep(protocol.Remember + time.Minute)
		c.Delay(1, 10*time.Millisecond)
		seen = status(t, reader).State
		return nil
	}))
	assert.Equal(t, once.Done, status(t, reader).State)
	return seen
}
