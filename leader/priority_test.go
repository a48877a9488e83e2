package leader_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/quoratetest"
)

// The candidate with the highest priority leads after a leader that resigns,
// and the next in line after one that dies.
func TestPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Second
		n := nodes(t)
		_, m := fleet(t, n, e2e.Timing(ttl))
		of := func(id string, priority int) *leader.Election {
			return leader.New(n.Quorum(e2e.Timing(ttl)), "e", leader.WithID(id), leader.WithPriority(priority))
		}
		a, b, best := of("a", 0), of("b", -1), of("best", 7)
		s := newStage()
		ctx, cancel := context.WithCancel(t.Context())
		done := run(ctx, a, s.callbacks())
		work := e2e.Receive(t, s.started)
		led := line(t, m, a, b)
		time.Sleep(ttl)
		outranked, err := a.Outranked(soon(t))
		require.NoError(t, err)
		require.False(t, outranked)
		toBest := campaign(soon(t), best, "")
		waiters(t, m, 2)
		outranked, err = a.Outranked(soon(t))
		require.NoError(t, err)
		require.True(t, outranked)
		time.Sleep(10 * ttl)
		require.NoError(t, work.ctx.Err(), "nothing is forced")
		close(work.leave)
		require.NoError(t, e2e.Receive(t, toBest))
		waiters(t, m, 2) // b and a are in line again, in either order
		_, err = a.Outranked(soon(t))
		require.ErrorIs(t, err, quorate.ErrNotHeld)

		time.Sleep(ttl)
		require.NoError(t, best.Resign(soon(t)))
		work = e2e.Receive(t, s.started) // 0 is above -1
		cancel()
		close(work.leave)
		require.NoError(t, e2e.Receive(t, led[1]))
		require.ErrorIs(t, e2e.Receive(t, done), context.Canceled)
		require.NoError(t, b.Resign(soon(t)))
	})
}

// Without a waiting claim, Outranked and the end of a term ask no node.
func TestPriorityOfOneThatIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nodes(t)
		q := n.Quorum(e2e.Timing(quiet))
		e := leader.New(q, "e", leader.WithPriority(1))
		_, err := e.Outranked(t.Context())
		require.ErrorIs(t, err, quorate.ErrNotHeld)
		require.NoError(t, e.Campaign(soon(t), ""))
		n.Partition(q, 0, 1, 2)
		began := time.Now()
		outranked, err := e.Outranked(soon(t))
		require.NoError(t, err)
		require.False(t, outranked)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, e.Resign(ctx), quorate.ErrNoQuorum)
		require.Zero(t, time.Since(began))
		n.Partition(q)
	})
}

// A leader that cannot read the queue resigns as without a priority.
func TestPriorityWithoutAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Second
		n := nodes(t)
		q := n.Quorum(e2e.Timing(ttl))
		a := leader.New(q, "e", leader.WithID("a"), leader.WithPriority(1))
		es, m := fleet(t, n, e2e.Timing(ttl), "b", "c")
		require.NoError(t, a.Campaign(soon(t), ""))
		led := line(t, m, a, es[0], es[1])
		time.Sleep(ttl)
		n.Partition(q, 0, 1)
		began := time.Now()
		require.ErrorIs(t, a.Resign(soon(t)), quorate.ErrNoQuorum)
		require.Less(t, time.Since(began), ttl)
		require.NoError(t, e2e.Receive(t, led[1]))
		n.Partition(q)
		require.NoError(t, es[0].Resign(soon(t)))
		require.NoError(t, e2e.Receive(t, led[2]))
		require.NoError(t, es[1].Resign(soon(t)))
	})
}

// The claims of an election show who campaigns. Those of a participant without
// an ID and a priority of its own, and those of an observer, show nothing.
func TestCandidatesAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := quoratetest.New(t, 3)
		shown := func(opts ...quorate.LeaderOption) inspect.Claim {
			q := n.Quorum()
			e := leader.New(q, "e", opts...)
			require.NoError(t, e.Campaign(quorate.WithNote(soon(t), "a note: 1"), ""))
			r, err := inspect.Name(soon(t), q, "e")
			require.NoError(t, err)
			require.NoError(t, e.Resign(soon(t)))
			require.NoError(t, q.Close())
			require.Equal(t, "a note: 1", r.Holders[0].Note)
			return r.Holders[0]
		}
		c := shown()
		require.Equal(t, "", c.ID)
		c = shown(leader.WithID("pod-1 “x”"))
		require.Equal(t, "pod-1 “x”", c.ID)
		require.Zero(t, c.Priority)
		c = shown(leader.WithID("pod-1"), leader.WithPriority(-3))
		require.Equal(t, "pod-1", c.ID)
		require.Equal(t, -3, c.Priority)
		c = shown(leader.WithPriority(2))
		require.NotEmpty(t, c.ID)
		require.Equal(t, 2, c.Priority)
		require.Empty(t, shown(leader.WithID("two\nlines")).ID)
		require.Empty(t, shown(leader.WithID(strings.Repeat("x", 201))).ID)
	})
}

// A process that resigns because it was told to stop has a context that is done.
// The best candidate leads all the same.
func TestPriorityAfterTheEndOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Second
		n := nodes(t)
		q := n.Quorum(e2e.Timing(ttl))
		a := leader.New(q, "e", leader.WithID("a"), leader.WithPriority(1))
		es, m := fleet(t, n, e2e.Timing(ttl), "b")
		best := leader.New(q, "e", leader.WithID("best"), leader.WithPriority(2))
		require.NoError(t, a.Campaign(soon(t), ""))
		led := line(t, m, a, es[0], best)
		time.Sleep(ttl) // by then a knows that others wait
		done, cancel := context.WithCancel(t.Context())
		cancel()
		_ = a.Resign(done)
		require.NoError(t, e2e.Receive(t, led[2]))
		require.Empty(t, led[1])
		require.NoError(t, best.Resign(soon(t)))
		require.NoError(t, e2e.Receive(t, led[1]))
		require.NoError(t, es[0].Resign(soon(t)))
	})
}
