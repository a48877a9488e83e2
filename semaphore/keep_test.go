package semaphore

import (
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/quoratetest"
)

// An answer from just before the deadline renews a hold while Acquire lists it.
// It looked lost; it must not live on without an owner.
func TestReleaseOfAHoldThatIsRenewedAsItIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		s, other := NewWeighted(c.Quorum(), "s", 2), NewWeighted(c.Quorum(), "s", 2)
		l, err := s.get(t.Context(), 2, false, s.lose)
		require.NoError(t, err)
		hold := l.lease.Hold()
		synctest.Wait() // a later answer would move the deadline
		standing := reflect.ValueOf(hold).FieldByName("a").Elem().FieldByName("packed").Addr().UnsafePointer()
		(*atomic.Int64)(standing).Store(2) // as it was before the renewal, long past
		s.keep(l)
		require.NoError(t, hold.Renew(t.Context()))
		s.Release(2)
		synctest.Wait()
		require.True(t, other.TryAcquire(2))
		other.Release(2)
	})
}
