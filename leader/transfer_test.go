package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/leader"
)

// The leader hands over to the third in line. The second one steps back, and
// never leads meanwhile.
func TestTransferTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es, m := fleet(t, nodes(t), e2e.Timing(quiet), "a", "b", "c", "d")
		a, b, c, d := es[0], es[1], es[2], es[3]
		require.NoError(t, a.Campaign(soon(t), "at a"))
		toB := campaign(soon(t), b, "")
		waiters(t, m, 1)
		toC := campaign(soon(t), c, "at c")
		waiters(t, m, 2)
		toD := campaign(soon(t), d, "")
		waiters(t, m, 3)
		first := a.Lease().Token()

		require.ErrorIs(t, a.TransferTo(soon(t), "x"), leader.ErrNoCandidate)
		require.ErrorIs(t, a.TransferTo(soon(t), "a"), leader.ErrNoCandidate, "it leads already")
		require.ErrorIs(t, a.TransferTo(soon(t), ""), leader.ErrNoCandidate)
		require.ErrorIs(t, b.TransferTo(soon(t), "c"), quorate.ErrNotHeld)
		require.NoError(t, a.Lease().Context().Err())

		require.NoError(t, a.TransferTo(soon(t), "c"))
		require.Nil(t, a.Lease())
		require.NoError(t, e2e.Receive(t, toC))
		waiters(t, m, 2) // b is in line again
		require.Empty(t, toB)
		require.Greater(t, c.Lease().Token(), first)
		l, err := d.Leader(soon(t))
		require.NoError(t, err)
		require.Equal(t, "at c", l.Value)

		// The transfer is over: the next in line leads.
		require.NoError(t, c.Resign(soon(t)))
		require.NoError(t, e2e.Receive(t, toD))
		require.NoError(t, d.Resign(soon(t)))
		require.NoError(t, e2e.Receive(t, toB))
		require.NoError(t, b.Resign(soon(t)))
	})
}

// While Run is running, the work returns before the other one leads.
func TestTransferToWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es, m := fleet(t, nodes(t), e2e.Timing(quiet), "a", "b", "c")
		a, b, c := es[0], es[1], es[2]
		ctx, cancel := context.WithCancel(t.Context())
		s := newStage()
		done := run(ctx, a, s.callbacks())
		work := e2e.Receive(t, s.started)
		toB := campaign(soon(t), b, "")
		waiters(t, m, 1)
		toC := campaign(soon(t), c, "")
		waiters(t, m, 2)
		require.NoError(t, a.TransferTo(soon(t), "c"))
		require.Equal(t, quorate.ErrReleased, context.Cause(work.ctx))
		synctest.Wait()
		require.NoError(t, work.lease.Context().Err(), "it leads until its work has returned")
		require.Empty(t, toC)
		cancel() // as at a SIGTERM: it hands over all the same
		close(work.leave)
		require.NoError(t, e2e.Receive(t, toC))
		require.NoError(t, e2e.Receive(t, s.stopped))
		require.ErrorIs(t, e2e.Receive(t, done), context.Canceled)
		require.Empty(t, toB)
		require.ErrorIs(t, a.TransferTo(soon(t), "b"), quorate.ErrNotHeld)
		require.NoError(t, c.Resign(soon(t)))
		require.NoError(t, e2e.Receive(t, toB))
		require.NoError(t, b.Resign(soon(t)))
	})
}

// The successor dies as it is to lead. The next one leads once the lease of the
// successor's claim has ended.
func TestTransferToOneThatDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Second
		c := nodes(t)
		es, m := fleet(t, c, e2e.Timing(ttl), "a", "b")
		dying := c.Quorum(e2e.Timing(ttl))
		a, b, dies := es[0], es[1], leader.New(dying, "e", leader.WithID("dies"))
		require.NoError(t, a.Campaign(soon(t), ""))
		toB := campaign(soon(t), b, "")
		waiters(t, m, 1)
		ctx, cancel := context.WithCancel(t.Context())
		never := campaign(ctx, dies, "")
		waiters(t, m, 2)
		c.Partition(dying, 0, 1, 2)
		require.NoError(t, a.TransferTo(soon(t), "dies"))
		ended := time.Now()
		require.NoError(t, e2e.Receive(t, toB))
		require.LessOrEqual(t, time.Since(ended), ttl+ttl/10)
		cancel()
		require.Error(t, e2e.Receive(t, never))
		require.NoError(t, b.Resign(soon(t)))
	})
}

// A successor that gets the claim again and again, and never leads, keeps out
// the others for one ttl.
func TestTransferToOneThatNeverLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Second
		c := nodes(t)
		es, m := fleet(t, c, e2e.Timing(ttl), "a", "b")
		a, b, q := es[0], es[1], core.CoreOf(c.Quorum(e2e.Timing(ttl)))
		require.NoError(t, a.Campaign(soon(t), ""))
		toB := campaign(soon(t), b, "")
		waiters(t, m, 1)
		spec, err := q.NewSpec(core.Spec{Name: "e", Kind: "leader", Weight: 1, Capacity: 1, Set: &q.Set,
			Candidate: script.Candidate("never", 0)})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			for ctx.Err() == nil {
				if h, err := q.Acquire(ctx, spec, false, nil); err == nil {
					time.Sleep(ttl / 50)
					h.Release()
				}
			}
		}()
		waiters(t, m, 2)
		require.NoError(t, a.TransferTo(soon(t), "never"))
		ended := time.Now()
		require.NoError(t, e2e.Receive(t, toB))
		require.LessOrEqual(t, time.Since(ended), ttl+ttl/5)
		require.GreaterOrEqual(t, time.Since(ended), ttl/2, "it has waited for it")
		cancel()
		<-gone
		require.NoError(t, b.Resign(soon(t)))
	})
}

// The candidate with the highest priority leads after a leader that resigns,
// and the next in line after one that dies.
func TestPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Second
		c := nodes(t)
		_, m := fleet(t, c, e2e.Timing(ttl))
		of := func(id string, n int) *leader.Election {
			return leader.New(c.Quorum(e2e.Timing(ttl)), "e", leader.WithID(id), leader.WithPriority(n))
		}
		a, b, best := of("a", 0), of("b", -1), of("best", 7)
		outranked := make(chan string, 1)
		s := newStage()
		cb := s.callbacks()
		cb.OnOutranked = func(id string) { outranked <- id }
		ctx, cancel := context.WithCancel(t.Context())
		done := run(ctx, a, cb)
		work := e2e.Receive(t, s.started)
		toB := campaign(soon(t), b, "")
		waiters(t, m, 1)
		time.Sleep(10 * ttl)
		require.Empty(t, outranked)
		toBest := campaign(soon(t), best, "")
		require.Equal(t, "best", e2e.Receive(t, outranked))
		time.Sleep(ttl)
		require.NoError(t, work.ctx.Err(), "nothing is forced")
		close(work.leave)
		require.NoError(t, e2e.Receive(t, toBest))
		waiters(t, m, 2) // b and a are in line again, in either order
		require.NoError(t, best.Resign(soon(t)))
		work = e2e.Receive(t, s.started) // 0 is above -1
		cancel()
		close(work.leave)
		require.NoError(t, e2e.Receive(t, toB))
		require.ErrorIs(t, e2e.Receive(t, done), context.Canceled)
		require.NoError(t, b.Resign(soon(t)))
	})
}
