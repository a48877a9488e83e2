package core_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/quoratetest"
)

// The answer that settles an open comes just after its hold has ended. No run
// begins.
func TestOpenThatIsAnsweredAfterItsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl, late = time.Second, 20 * time.Millisecond
		c := quoratetest.New(t, 3)
		r := register(t, c.Quorum(e2e.Timing(ttl)))
		set := *r.spec.Set
		set.NoRenewal = true
		spec, err := r.q.NewSpec(core.Spec{Name: name, Weight: 1, Capacity: 1, Set: &set})
		require.NoError(t, err)
		hold, err := r.q.Acquire(t.Context(), spec, false, nil)
		require.NoError(t, err)
		c.Delay(1, 2*late)
		c.Delay(2, time.Hour)
		time.Sleep(time.Until(hold.ValidUntil()) - late)
		_, err = r.q.Register(spec).Open(t.Context(), hold)
		assert.False(t, hold.Valid())
		assert.ErrorIs(t, err, fault.ErrLost)
	})
}

// The last write of a run reaches nodes that have forgotten the scripts, though
// its caller does not wait.
func TestRetireAfterAScriptFlush(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	a := register(t, e2e.Open(t, c, e2e.Timing(2*time.Second)))
	b := register(t, e2e.OpenAt(t, c.URLs(), e2e.Timing(2*time.Second)))
	h := a.hold(t)
	_, err := a.Open(soon(t), h)
	require.NoError(t, err)
	require.NoError(t, a.Put(soon(t), h, 0, []byte("done"), 0))
	for i := range 3 {
		require.NoError(t, c.Node(i).Client().ScriptFlush(t.Context()).Err())
	}
	a.Retire(h, 1, time.Minute)
	h2 := b.hold(t)
	rec, err := b.Open(soon(t), h2)
	require.NoError(t, err)
	assert.False(t, rec.Exists)
	h2.Release()
}
