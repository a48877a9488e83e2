package inspect_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/flight"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/period"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// A name shows its kind before anything is recorded for it.
func TestKindsOfClaims(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	shows := func(name string, kind inspect.Kind) {
		r := until(t, q, name, func(r *inspect.Report) bool { return len(r.Holders) == 1 })
		assert.Equal(t, kind, r.Kind)
	}
	require.NoError(t, semaphore.NewWeighted(q, "one", 1).Acquire(t.Context(), 1))
	shows("one", inspect.Semaphore)
	require.NoError(t, once.New(q, "once").DoContext(t.Context(),
		func(context.Context) error { shows("once", inspect.Once); return nil }))
	_, err := period.New(q, "period", time.Hour).Do(t.Context(),
		func(context.Context) error { shows("period", inspect.Period); return nil })
	require.NoError(t, err)
	_, err = flight.New[string](q, "").Do(t.Context(), "flight", time.Hour,
		func(context.Context) (string, error) { shows("flight", inspect.Flight); return "", nil })
	require.NoError(t, err)
	m := mutex.New(q, "mutex")
	m.Lock()
	shows("mutex", inspect.Mutex)
}

func TestKinds(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	rw := rwmutex.New(q, "rw")
	rw.RLock()
	s := semaphore.NewWeighted(q, "sem", 5)
	for range 2 {
		require.NoError(t, s.Acquire(t.Context(), 2))
	}
	require.NoError(t, once.New(q, "once").DoContext(t.Context(), func(context.Context) error { return nil }))
	e := leader.New(q, "leader", leader.WithID("me"))
	require.NoError(t, e.Campaign(t.Context(), "http://here"))
	_, err := period.New(q, "period", time.Hour).Do(t.Context(), func(context.Context) error { return nil })
	require.NoError(t, err)
	_, err = flight.New[string](q, "").Do(t.Context(), "flight", time.Hour,
		func(context.Context) (string, error) { return "loaded", nil })
	require.NoError(t, err)

	r, err := inspect.Name(t.Context(), q, "rw")
	require.NoError(t, err)
	assert.Equal(t, inspect.RWMutex, r.Kind)
	require.Len(t, r.Holders, 1)
	assert.False(t, r.Holders[0].Writer)
	rw.RUnlock()
	rw.Lock()
	r = until(t, q, "rw", func(r *inspect.Report) bool { return len(r.Holders) == 1 && r.Holders[0].Writer })
	assert.Zero(t, r.Capacity)

	r = until(t, q, "sem", func(r *inspect.Report) bool { return len(r.Holders) == 2 })
	assert.Equal(t, inspect.Semaphore, r.Kind)
	assert.Equal(t, int64(5), r.Capacity)
	assert.Equal(t, int64(2), r.Holders[0].Weight)

	r, err = inspect.Name(t.Context(), q, "once")
	require.NoError(t, err)
	assert.Equal(t, inspect.Once, r.Kind)
	require.NotNil(t, r.Record)
	assert.Equal(t, os.Getpid(), r.Record.PID)
	assert.WithinDuration(t, time.Now(), r.Record.At, time.Minute)
	assert.GreaterOrEqual(t, r.Record.Nodes, 2)

	r, err = inspect.Name(t.Context(), q, "leader")
	require.NoError(t, err)
	assert.Equal(t, inspect.Leader, r.Kind)
	require.NotNil(t, r.Record)
	assert.Equal(t, "me", r.Record.ID)
	assert.Equal(t, "http://here", r.Record.Value)
	assert.Equal(t, e.Lease().Token(), r.Record.Token)

	for name, kind := range map[string]inspect.Kind{"period": inspect.Period, "flight": inspect.Flight} {
		r, err = inspect.Name(t.Context(), q, name)
		require.NoError(t, err)
		assert.Equal(t, kind, r.Kind)
		require.NotNil(t, r.Record)
		assert.NotZero(t, r.Record.Token)
		assert.Empty(t, r.Record.Value)
	}

	free := mutex.New(q, "free") // its last ticket is remembered
	require.NoError(t, free.Do(t.Context(), func(context.Context) error { return nil }))
	require.True(t, e2e.Eventually(func() bool {
		kinds := map[string]inspect.Kind{}
		for e, err := range inspect.Names(t.Context(), q, "") {
			require.NoError(t, err)
			kinds[e.Name] = e.Kind
		}
		return assert.ObjectsAreEqual(map[string]inspect.Kind{"rw": "rwmutex", "sem": "semaphore", "once": "once",
			"leader": "leader", "period": "period", "flight": "flight"}, kinds)
	}))
	for e, err := range inspect.Names(t.Context(), q, "s*") {
		require.NoError(t, err)
		assert.Equal(t, "sem", e.Name)
		assert.Equal(t, 2, e.Holders)
		require.NotNil(t, e.Holder)
		assert.Equal(t, os.Getpid(), e.Holder.PID)
	}
	rw.Unlock()
}

// A listing goes on without a minority of the nodes, fails without a majority,
// and ends as it is left.
func TestNames(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	for i := range 700 {
		mutex.New(q, "m "+strconv.Itoa(i)).Lock()
	}
	held := 0
	names := func() (names map[string]bool, failed error) {
		names, held = map[string]bool{}, 0
		for e, err := range inspect.Names(t.Context(), q, "m *") {
			if err != nil {
				return names, err
			}
			assert.False(t, names[e.Name], "each name once")
			if names[e.Name] = true; e.Holder != nil {
				held++
			}
		}
		return names, nil
	}
	all, err := names()
	require.NoError(t, err)
	assert.Equal(t, []int{700, 700}, []int{len(all), held})
	require.NoError(t, c.Node(0).Stop())
	all, err = names()
	require.NoError(t, err)
	assert.Equal(t, []int{700, 700}, []int{len(all), held})
	for range inspect.Names(t.Context(), q, "") {
		break
	}
	require.NoError(t, c.Node(1).Stop())
	_, err = names()
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	require.NoError(t, c.Node(0).Cont())
	require.NoError(t, c.Node(1).Cont())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range inspect.Names(ended, q, "") {
		assert.ErrorIs(t, err, context.Canceled)
	}
}
