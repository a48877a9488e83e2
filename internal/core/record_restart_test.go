package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

const recordKey = "quorate:{" + name + "}:r"

// everywhere waits until all nodes have the record.
func everywhere(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	for i := range c.Len() {
		require.True(t, e2e.Eventually(func() bool {
			return c.Node(i).Client().Exists(t.Context(), recordKey).Val() == 1
		}))
	}
}

// recordsEverywhere has all nodes record a value. With a short ttl, on a busy
// machine, a claim may have ended at one of them as the write arrives there.
func recordsEverywhere(t *testing.T, c *redistest.Cluster, a client, value string) {
	t.Helper()
	require.True(t, e2e.Eventually(func() bool {
		h := a.hold(t)
		defer h.Release()
		if a.Put(soon(t), h, 0, []byte(value), 0) != nil {
			return false
		}
		for range 100 {
			have := 0
			for i := range c.Len() {
				have += int(c.Node(i).Client().Exists(t.Context(), recordKey).Val())
			}
			if have == c.Len() {
				return true
			}
			time.Sleep(time.Millisecond)
		}
		return false
	}))
}

// A run that finds a record on a minority records it again. What it then
// records itself is not taken for a repetition of that.
func TestOwnWriteAfterAnAdoptedRecord(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	a := register(t, e2e.Open(t, c, e2e.Timing(2*time.Second)))
	h := a.hold(t)
	require.NoError(t, a.Put(soon(t), h, 0, []byte("old"), 0))
	everywhere(t, c)
	h.Release()
	require.NoError(t, c.Node(2).Client().Del(t.Context(), recordKey).Err()) // as if it had missed it
	require.NoError(t, c.Node(1).Stop())
	h = a.hold(t)
	rec, err := a.Open(soon(t), h)
	require.NoError(t, err)
	assert.Equal(t, "old", string(rec.Value))
	require.NoError(t, a.Put(soon(t), h, 0, []byte("new"), 0))
	require.NoError(t, c.Node(1).Cont())
	rec, err = a.Read(soon(t))
	require.NoError(t, err)
	assert.Equal(t, "new", string(rec.Value))
	h.Release()
}

// A server that comes back with an old snapshot cannot attest, also when no
// client was there to see it within the guard time.
func TestOldSnapshot(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	timing := e2e.Timing(200 * time.Millisecond)
	q := e2e.Open(t, c, timing)
	a := register(t, q)
	require.NoError(t, c.Node(0).Client().Save(t.Context()).Err())
	recordsEverywhere(t, c, a, "done")
	// On a busy machine a release takes longer than this ttl.
	_ = q.Close()
	require.NoError(t, c.Node(2).Client().Del(t.Context(), recordKey).Err()) // as if it had missed it
	require.NoError(t, c.Node(0).Kill())
	require.NoError(t, c.Node(0).Restart())
	require.Equal(t, int64(1), c.Node(0).Client().Exists(t.Context(),
		e2e.MarkerKey(t.Context(), c.Node(0))).Val(), "its marker has survived")
	require.True(t, e2e.Eventually(func() bool { // the guard time is over; INFO counts whole seconds
		return c.Node(0).Client().InfoMap(t.Context(), "server").Item("Server", "uptime_in_seconds") >= "2"
	}))
	require.NoError(t, c.Node(1).Stop())
	b := register(t, e2e.OpenAt(t, c.URLs(), timing))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := b.Read(ctx)
	require.ErrorIs(t, err, fault.ErrNoQuorum, "the two that can be asked do not know")
	require.NoError(t, c.Node(1).Cont())
	rec, err := b.Read(soon(t))
	require.NoError(t, err)
	assert.Equal(t, "done", string(rec.Value))
}

// A node that has lost its data is not caught up before all nodes that may know
// have repaired it: one that cannot be asked may be the only one.
func TestNodeIsCaughtUpOnceItIsRepaired(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	timing := e2e.Timing(200 * time.Millisecond)
	a := register(t, e2e.Open(t, c, timing))
	recordsEverywhere(t, c, a, "done")
	require.NoError(t, c.Node(2).Client().Del(t.Context(), recordKey).Err()) // as if it had missed it
	require.NoError(t, c.Node(1).Stop())
	require.NoError(t, c.Node(0).Client().FlushAll(t.Context()).Err())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := a.Read(ctx) // which has it noticed, and told what there is
	require.ErrorIs(t, err, fault.ErrNoQuorum, "the two that can be asked do not know")
	assert.False(t, caughtUp(t, c.Node(0)))
	require.NoError(t, c.Node(1).Cont())
	require.True(t, e2e.Eventually(func() bool { return caughtUp(t, c.Node(0)) }))
	assert.Equal(t, int64(1), c.Node(0).Client().Exists(t.Context(), recordKey).Val())
}

func caughtUp(t *testing.T, n *redistest.Server) bool {
	t.Helper()
	return strings.HasSuffix(n.Client().Get(t.Context(), e2e.MarkerKey(t.Context(), n)).Val(), " w")
}

// A put that no node will ever take is given up, though its caller would wait.
func TestHopelessPut(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	timing := e2e.Timing(200 * time.Millisecond)
	a := register(t, e2e.Open(t, c, timing))
	h := a.hold(t)
	_, err := a.Open(soon(t), h)
	require.NoError(t, err)
	everywhere(t, c)
	h.Release() // as good as lost
	for i := range 3 {
		require.NoError(t, c.Node(i).Client().Del(t.Context(), recordKey).Err()) // the promise has been forgotten
	}
	require.ErrorIs(t, a.Put(soon(t), h, 0, []byte("done"), 0), fault.ErrLost)
}

// Pushes without end do not keep a watch from asking.
func TestWatchUnderPushes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	a := register(t, e2e.Open(t, c, e2e.Timing(2*time.Second)))
	b := register(t, e2e.OpenAt(t, c.URLs(), e2e.Timing(2*time.Second)))
	w := b.Watch()
	defer w.Close()
	h := a.hold(t)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for seq := uint64(0); ; seq++ {
			select {
			case <-stop:
				return
			default:
				assert.NoError(t, a.Put(soon(t), h, seq, []byte("more"), 0))
			}
		}
	}()
	last := uint64(0)
	for range 20 { // would be one or two if each push put the question off
		require.True(t, e2e.Eventually(func() bool {
			rec, known, err := w.Latest()
			newer := err == nil && known && rec.Seq > last
			if newer {
				last = rec.Seq
			}
			return newer
		}))
	}
	close(stop)
	<-stopped
	h.Release()
}
