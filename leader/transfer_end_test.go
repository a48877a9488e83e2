package leader_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/leader"
)

// The chosen candidate is restarted while the leader finishes its work. Its new
// claim leads, although two others wait before it.
func TestTransferToOneThatIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es, m := fleet(t, nodes(t), e2e.Timing(quiet), "a", "b", "c", "d")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := newStage()
		done := run(ctx, es[0], s.callbacks())
		work := e2e.Receive(t, s.started)
		toB := campaign(soon(t), es[1], "")
		waiters(t, m, 1)
		before, restart := context.WithCancel(t.Context())
		toC := campaign(before, es[2], "")
		waiters(t, m, 2)
		toD := campaign(soon(t), es[3], "")
		waiters(t, m, 3)

		require.NoError(t, es[0].TransferTo(soon(t), "c"))
		restart()
		require.Error(t, e2e.Receive(t, toC))
		waiters(t, m, 2)
		toC = campaign(soon(t), es[2], "")
		waiters(t, m, 3) // at one node
		synctest.Wait()  // at all nodes
		cancel()
		close(work.leave)
		require.NoError(t, e2e.Receive(t, toC))
		require.Error(t, e2e.Receive(t, done))
		waiters(t, m, 2)
		require.Empty(t, toB)
		require.Empty(t, toD)
		require.NoError(t, es[2].Resign(soon(t)))
		for range 2 { // b and d have queued again, in either order
			select {
			case err := <-toB:
				require.NoError(t, err)
				require.NoError(t, es[1].Resign(soon(t)))
			case err := <-toD:
				require.NoError(t, err)
				require.NoError(t, es[3].Resign(soon(t)))
			}
		}
	})
}

// A term that is over cannot be handed over, and a leader that has lost it is
// not outranked.
func TestTransferAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Second
		n := nodes(t)
		q := n.Quorum(e2e.Timing(ttl))
		a := leader.New(q, "e", leader.WithID("a"), leader.WithPriority(1))
		es, m := fleet(t, n, e2e.Timing(ttl), "b")
		s := newStage()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := run(ctx, a, s.callbacks())
		work := e2e.Receive(t, s.started)
		led := campaign(soon(t), es[0], "")
		waiters(t, m, 1)
		n.Partition(q, 0, 1, 2)
		e2e.Receive(t, work.ctx.Done())
		require.ErrorIs(t, a.TransferTo(soon(t), "b"), quorate.ErrLost)
		_, err := a.Outranked(soon(t))
		require.ErrorIs(t, err, quorate.ErrLost)
		require.NoError(t, e2e.Receive(t, led))
		n.Partition(q)
		cancel()
		close(work.leave)
		require.Error(t, e2e.Receive(t, done))
		require.NoError(t, es[0].Resign(soon(t)))
	})
}

// Others must be able to see the ID of a participant that has a priority.
func TestPriorityOfAnIDThatCannotBeShown(t *testing.T) {
	t.Parallel()
	q := nodes(t).Quorum()
	for _, id := range []string{strings.Repeat("x", 201), "a\tb"} {
		e := leader.New(q, "e", leader.WithID(id), leader.WithPriority(1))
		require.ErrorIs(t, e.Campaign(t.Context(), ""), quorate.ErrInvalid)
		e = leader.New(q, "f", leader.WithID(id))
		require.NoError(t, e.Campaign(t.Context(), ""))
		require.NoError(t, e.Resign(t.Context()))
	}
}

// A candidate ahead of the chosen one gives up, at each moment of a transfer. It
// must not erase the leader's message, or the one behind it leads.
func TestTransferPastOneThatGivesUp(t *testing.T) {
	for after := time.Duration(0); after <= 60*time.Millisecond; after += 2 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			n := nodes(t)
			es, m := fleet(t, n, e2e.Timing(quiet), "a", "b", "d", "c")
			require.NoError(t, es[0].Campaign(soon(t), ""))
			ctx, giveUp := context.WithCancel(t.Context())
			toB := campaign(ctx, es[1], "")
			waiters(t, m, 1)
			toD := campaign(soon(t), es[2], "")
			waiters(t, m, 2)
			toC := campaign(soon(t), es[3], "")
			waiters(t, m, 3)
			for i := range 3 {
				n.Delay(i, 10*time.Millisecond)
			}
			transferred := make(chan error, 1)
			go func() { transferred <- es[0].TransferTo(soon(t), "c") }()
			time.Sleep(after)
			giveUp()
			require.NoError(t, e2e.Receive(t, transferred))
			require.Error(t, e2e.Receive(t, toB))
			select {
			case err := <-toC:
				require.NoError(t, err)
			case <-toD:
				t.Fatalf("b gave up after %v, and d leads", after)
			}
			require.NoError(t, es[3].Resign(soon(t)))
			require.NoError(t, e2e.Receive(t, toD))
			require.NoError(t, es[2].Resign(soon(t)))
		})
	}
}

// Resign with a nil context panics, and the term is still there to resign.
func TestResignWithANilContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nodes(t)
		a := leader.New(n.Quorum(e2e.Timing(quiet)), "e", leader.WithPriority(1))
		es, m := fleet(t, n, e2e.Timing(quiet), "b")
		require.NoError(t, a.Campaign(soon(t), ""))
		led := line(t, m, a, es[0])
		none := context.Context(nil)
		require.Panics(t, func() { _ = a.Resign(none) })
		require.NotNil(t, a.Lease())
		require.NoError(t, a.Resign(soon(t)))
		require.NoError(t, e2e.Receive(t, led[1]))
		require.NoError(t, es[0].Resign(soon(t)))
	})
}
