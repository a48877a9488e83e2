package flight

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/quoratetest"
)

// A claim is lost before the load began, and its lease does not tell that yet.
// No caller gets an error for that.
func TestLossThatTheLeaseDoesNotTellYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := core.CoreOf(quoratetest.New(t, 3).Quorum())
		spec, err := q.NewSpec(core.Spec{Name: "f:k", Weight: 1, Capacity: 1, Set: &q.Set})
		require.NoError(t, err)
		l := &loader[int]{q: q, spec: spec, reg: q.Register(spec), will: func(time.Duration) bool { return false }}
		lease, err := q.AcquireLease(t.Context(), spec, false, new(core.Single))
		require.NoError(t, err)
		synctest.Wait() // a later answer would move the deadline
		standing := reflect.ValueOf(lease.Hold()).FieldByName("a").Elem().FieldByName("packed").Addr().UnsafePointer()
		(*atomic.Int64)(standing).Store(4) // its deadline is long past
		_, err = l.run(t.Context(), lease, func(context.Context) (int, error) { return 1, nil })
		assert.Equal(t, errLostBefore, err)
	})
}
