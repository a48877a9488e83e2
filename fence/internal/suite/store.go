package suite

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fence"
)

// Store checks what each store must do. open opens it once more, on the same
// fences.
func Store(t *testing.T, open func() fence.Store) {
	t.Helper()
	s := open()
	enter := func(token uint64) (leave func()) {
		t.Helper()
		leave, err := s.Enter(t.Context(), "store", token)
		require.NoError(t, err)
		return leave
	}
	stale := func(s fence.Store, token uint64) {
		t.Helper()
		_, err := s.Enter(t.Context(), "store", token)
		require.ErrorIs(t, err, fence.ErrStale)
	}
	enter(Big)()
	stale(s, Big-1)
	first := enter(Big) // two requests of one holder at the same time
	request, end := context.WithCancel(t.Context())
	second, err := s.Enter(request, "store", Big)
	require.NoError(t, err)

	// The end of a request's context does not end its work. So a later holder
	// waits, until it gives up.
	end()
	first()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Enter(ctx, "store", Big+1)
	require.Error(t, err)
	require.NotErrorIs(t, err, fence.ErrStale)

	entered := make(chan error, 1)
	var inside atomic.Int64
	inside.Store(1)
	go func() {
		leave, err := s.Enter(t.Context(), "store", Big+2)
		if err == nil {
			assert.Zero(t, inside.Load(), "a later holder is in before the earlier one has left")
			leave()
		}
		entered <- err
	}()
	inside.Add(-1)
	second()
	require.NoError(t, <-entered)
	stale(s, Big+1)
	stale(open(), Big+1)
	require.NotPanics(t, second, "leave may be called again")
	enter(Big + 2)()
	other, err := s.Enter(t.Context(), "another name", 1)
	require.NoError(t, err)
	other()
	_, err = s.Enter(t.Context(), "", 1)
	require.ErrorContains(t, err, "a name has")

	testStoreHostile(t, s)
}

// Many workers with random tokens: never are two tokens in at the same time, and
// never does one come in after a higher one.
func testStoreHostile(t *testing.T, s fence.Store) {
	t.Helper()
	var mu sync.Mutex
	var highest, current uint64
	n, refused := 0, 0
	come := func(token uint64) {
		mu.Lock()
		defer mu.Unlock()
		assert.GreaterOrEqual(t, token, highest, "came in after a higher one")
		assert.True(t, n == 0 || current == token, "%d is in with %d", token, current)
		highest, current = token, token
		n++
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 20 {
				token := uint64(Big + i + rand.IntN(5))
				leave, err := s.Enter(t.Context(), "hostile store", token)
				if err != nil {
					assert.ErrorIs(t, err, fence.ErrStale)
					mu.Lock()
					refused++
					mu.Unlock()
					continue
				}
				come(token)
				pause()
				mu.Lock()
				n--
				mu.Unlock()
				leave()
			}
		})
	}
	wg.Wait()
	assert.Zero(t, n)
	assert.Positive(t, refused)
}
