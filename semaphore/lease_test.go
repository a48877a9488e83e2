package semaphore_test

import (
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/semaphore"
)

// No method or field of the library's own is there to be called by mistake.
func TestLeaseHasItsOwnMethodsOnly(t *testing.T) {
	t.Parallel()
	of := reflect.TypeFor[*semaphore.Lease]()
	var methods []string
	for m := range of.Methods() {
		methods = append(methods, m.Name)
	}
	assert.Equal(t, []string{"Context", "LogValue", "Release", "Token", "ValidUntil", "Wanted"}, methods)
	for i := range of.Elem().NumField() {
		assert.False(t, of.Elem().Field(i).IsExported(), of.Elem().Field(i).Name)
	}
}

func TestLeaseOfNoPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewWeighted(quoratetest.New(t, 1).Quorum(), "s", 2)
		for _, n := range []int64{0, -1} {
			_, err := s.AcquireLease(t.Context(), n)
			assert.ErrorIs(t, err, quorate.ErrInvalid)
			_, err = s.TryAcquireLease(t.Context(), n)
			assert.ErrorIs(t, err, quorate.ErrInvalid)
		}
		assert.NoError(t, s.Acquire(t.Context(), 0), "as x/sync does")
		assert.Panics(t, func() { _, _ = new(semaphore.Weighted).AcquireLease(t.Context(), 0) })
	})
}

func TestReleaseOfALeaseByMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewWeighted(quoratetest.New(t, 1).Quorum(), "s", 2)
		for range 20 {
			l, err := s.AcquireLease(t.Context(), 2)
			require.NoError(t, err)
			var all sync.WaitGroup
			var released atomic.Int32
			for range 4 {
				all.Go(func() {
					if err := l.Release(); err == nil {
						released.Add(1)
					} else {
						assert.ErrorIs(t, err, quorate.ErrNotHeld)
					}
				})
			}
			all.Wait()
			require.EqualValues(t, 1, released.Load())
		}
	})
}

// Permits that are given back one by one are free for others at once, also
// where the hold is not renewed, or not any more. The hold ends no later for
// it.
func TestPartIsFreeWithoutRenewal(t *testing.T) {
	long := []quorate.Option{quorate.WithTTL(10 * time.Minute), quorate.WithGuard(time.Hour),
		quorate.WithRetention(2 * time.Hour)}
	for what, opt := range map[string]quorate.Option{
		"WithoutRenewal": quorate.WithoutRenewal(), "WithMaxHold": quorate.WithMaxHold(time.Second),
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := quoratetest.New(t, 3)
				s := semaphore.NewWeighted(c.Quorum(append(long, opt)...), "s", 5)
				other := semaphore.NewWeighted(c.Quorum(long...), "s", 5)
				began := time.Now()
				require.NoError(t, s.Acquire(t.Context(), 5))
				time.Sleep(5 * time.Minute)
				released := time.Now()
				s.Release(3)
				require.NoError(t, other.Acquire(t.Context(), 3))
				assert.Less(t, time.Since(released), time.Second)

				require.NoError(t, other.Acquire(t.Context(), 2))
				assert.Greater(t, time.Since(began), 9*time.Minute)
				assert.LessOrEqual(t, time.Since(began), 10*time.Minute)
			})
		})
	}
}

// WithMaxHold bounds a hold by its time and a lease, however it is given back.
func TestMaxHoldOfAHoldThatIsGivenBackInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		for i := range 3 {
			c.Delay(i, 5*time.Millisecond)
		}
		const most, ttl = time.Second, 10 * time.Second
		s := semaphore.NewWeighted(c.Quorum(), "s", 20, quorate.WithMaxHold(most))
		require.NoError(t, s.Acquire(t.Context(), 20))
		began, other := time.Now(), semaphore.NewWeighted(c.Quorum(), "s", 20)
		got := make(chan time.Duration, 1)
		go func() {
			assert.NoError(t, other.Acquire(t.Context(), 20))
			got <- time.Since(began)
		}()
		for range 9 { // two at a time, within a round trip
			time.Sleep(6 * time.Second)
			s.Release(1)
			time.Sleep(time.Millisecond)
			s.Release(1)
		}
		assert.Less(t, <-got, most+ttl+time.Second)
		other.Release(20)
	})
}
