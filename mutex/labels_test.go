package mutex_test

import (
	"bytes"
	"context"
	"runtime/pprof"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

// A profile shows for which lock a goroutine works.
func TestDoSetsLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quoratetest.New(t, 1).Quorum()
		for _, do := range []func(context.Context, func(context.Context) error) error{
			mutex.New(q, "invoices").Do, mutex.All(q, []string{"invoices"}).Do,
		} {
			profile := func() string {
				var text bytes.Buffer
				require.NoError(t, pprof.Lookup("goroutine").WriteTo(&text, 1))
				return text.String()
			}
			require.NoError(t, do(t.Context(), func(ctx context.Context) error {
				name, _ := pprof.Label(ctx, "quorate_name")
				assert.Equal(t, "invoices", name)
				assert.Contains(t, profile(), `"quorate_kind":"mutex"`)
				return nil
			}))
			assert.NotContains(t, profile(), "quorate_kind")
		}
	})
}
