package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

func TestMain(m *testing.M) {
	e2e.Parallel(4) // most tests wait for a guard time
	e2e.Main(m)
}

const name = "ledger"

// client is a process's register, and its way to a claim.
type client struct {
	*core.Register
	q    *core.Quorum
	spec *core.Spec
}

func register(t *testing.T, q *quorate.Quorum) client {
	t.Helper()
	c := core.CoreOf(q)
	spec, err := c.NewSpec(core.Spec{Name: name, Weight: 1, Capacity: 1,
		Set: core.Override(c, "test", []quorate.Option{})})
	require.NoError(t, err)
	return client{c.Register(spec), c, spec}
}

func (c client) hold(t *testing.T) core.Hold {
	t.Helper()
	h, err := c.q.Acquire(soon(t), c.spec, false, nil)
	require.NoError(t, err)
	return h
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), e2e.Patience)
	t.Cleanup(cancel)
	return ctx
}

func TestRecord(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	a := register(t, e2e.Open(t, c, e2e.Timing(2*time.Second)))
	b := register(t, e2e.OpenAt(t, c.URLs(), e2e.Timing(2*time.Second)))

	rec, err := b.Read(soon(t))
	require.NoError(t, err)
	assert.Equal(t, core.Record{}, rec)

	w := b.Watch()
	defer w.Close()
	<-w.Changed()
	rec, known, err := w.Latest()
	require.NoError(t, err)
	assert.True(t, known)
	assert.False(t, rec.Exists)

	h := a.hold(t)
	rec, err = a.Open(soon(t), h)
	require.NoError(t, err)
	assert.False(t, rec.Exists)
	require.NoError(t, a.Put(soon(t), h, 0, []byte("done\x00\xff"), 0))
	<-w.Changed()
	rec, _, err = w.Latest()
	require.NoError(t, err)
	assert.Equal(t, "done\x00\xff", string(rec.Value))
	assert.Equal(t, h.Token(0), rec.Token)
	assert.Positive(t, rec.Left, "the claim that recorded it is still held")

	require.NoError(t, a.Put(soon(t), h, 2, []byte("more"), 0))
	require.NoError(t, a.Put(soon(t), h, 1, []byte("late"), 0), "superseded by the same hold's own")
	rec, err = b.Read(soon(t))
	require.NoError(t, err)
	assert.Equal(t, "more", string(rec.Value))

	a.Retire(h, 3, 0)
	h2 := b.hold(t)
	rec, err = b.Open(soon(t), h2)
	require.NoError(t, err)
	assert.False(t, rec.Exists, "erased before the next one had its turn")
	assert.ErrorIs(t, a.Put(soon(t), h, 4, []byte("too late"), 0), fault.ErrLost)
	h2.Release()
	require.True(t, e2e.Eventually(func() bool {
		rec, err := b.Read(soon(t))
		return err == nil && rec.Left == 0
	}))
	w.Close()
	e2e.Clean(t, c)
}

// What only one node has counts, and is brought to the others, by reading and
// by the run that comes next.
func TestRecordOnAMinority(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"read", "open"} {
		t.Run(how, func(t *testing.T) {
			c := redistest.Start(t, 3)
			a := register(t, e2e.Open(t, c, e2e.Timing(2*time.Second)))
			h := a.hold(t)
			require.NoError(t, a.Put(soon(t), h, 0, []byte("done"), 0))
			h.Release()
			key := "quorate:{" + name + "}:r"
			for i := range 3 {
				require.True(t,
					e2e.Eventually(func() bool { return c.Node(i).Client().Exists(t.Context(), key).Val() == 1 }))
			}
			for i := range 2 {
				require.NoError(t, c.Node(i).Client().Del(t.Context(), key).Err())
			}
			// Read may have its answer from the two others; this one must be
			// heard.
			require.NoError(t, c.Node(0).Stop())
			var rec core.Record
			var err error
			if how == "read" {
				rec, err = a.Read(soon(t))
			} else {
				h := a.hold(t)
				rec, err = a.Open(soon(t), h)
				h.Release()
			}
			require.NoError(t, err)
			assert.Equal(t, "done", string(rec.Value))
			require.NoError(t, c.Node(0).Cont())
			assert.Equal(t, int64(1), c.Node(1).Client().Exists(t.Context(), key).Val())
		})
	}
}

// A node that has lost its data cannot attest until it is caught up.
func TestForgetfulNode(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	timing := e2e.Timing(400 * time.Millisecond)
	a := register(t, e2e.Open(t, c, timing))
	h := a.hold(t)
	require.NoError(t, a.Put(soon(t), h, 0, []byte("done"), 0))
	h.Release()
	key := "quorate:{" + name + "}:r"
	for i := range 3 {
		require.True(t,
			e2e.Eventually(func() bool { return c.Node(i).Client().Exists(t.Context(), key).Val() == 1 }))
	}
	// Node 1 is not there when node 0 forgets: between the two that are left
	// it cannot be known whether something was on those two.
	require.NoError(t, c.Node(2).Client().Del(t.Context(), key).Err())
	require.NoError(t, c.Node(1).Stop())
	require.NoError(t, c.Node(0).Client().FlushAll(t.Context()).Err())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // longer than the guard time
	defer cancel()
	_, err := a.Read(ctx)
	require.ErrorIs(t, err, fault.ErrNoQuorum)
	assert.ErrorContains(t, errorOf(err, c.Node(0).Addr()), "lost its data")
	require.NoError(t, c.Node(1).Cont())
	rec, err := a.Read(soon(t))
	require.NoError(t, err)
	assert.Equal(t, "done", string(rec.Value))
	require.True(t, e2e.Eventually(func() bool {
		m, _ := c.Node(0).Client().Get(t.Context(), e2e.MarkerKey(t.Context(), c.Node(0))).Result()
		return len(m) > 2 && m[len(m)-2:] == " w"
	}), "and it becomes whole")
	assert.Equal(t, int64(1), c.Node(0).Client().Exists(t.Context(), key).Val())
}

func errorOf(err error, addr string) error {
	if f, ok := err.(*fault.Failure); ok {
		for _, n := range f.Nodes {
			if n.Addr == addr {
				return n.Err
			}
		}
	}
	return err
}
