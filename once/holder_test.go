package once_test

import (
	"context"
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/once"
)

// The work has a holder while it runs, and none when it is done.
func TestHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs := bubbled(nodes(t), 2, e2e.Timing(quiet))
		a, b := once.New(qs[0], "o"), once.New(qs[1], "o")
		ctx := t.Context()
		_, err := b.Holder(ctx)
		require.ErrorIs(t, err, quorate.ErrNotHeld)
		require.NoError(t, a.DoContext(ctx, func(ctx context.Context) error {
			h, err := b.Holder(ctx)
			require.NoError(t, err)
			assert.Equal(t, once.Lease(ctx).Token(), h.Token)
			assert.Equal(t, os.Getpid(), h.PID)
			assert.Equal(t, 1, h.Holders)
			return nil
		}))
		require.True(t, e2e.Eventually(func() bool {
			_, err = b.Holder(ctx)
			return err != nil
		}))
		require.ErrorIs(t, err, quorate.ErrNotHeld)
		_, err = once.New(qs[0], "").Holder(ctx)
		require.ErrorIs(t, err, quorate.ErrInvalid)
	})
}
