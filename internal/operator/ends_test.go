package operator

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// decides has the register of a set decide what follows, and returns that.
func decides(t *testing.T, q *core.Quorum, c, next *nodeset.Configuration) *nodeset.Configuration {
	t.Helper()
	s := change.NewSuccession(c, next, exchangeSettings().TTL, exchangeSettings().NodeTimeout)
	require.NoError(t, q.Succeed(minute(t), s.Register, s.TTL, s.NodeTimeout, &s.Run))
	decided, known := s.Decided()
	require.True(t, known)
	return decided
}

// What an operator that died had decided, and no node shows yet, is undone by
// the next call, too. Without that a later call begins with it.
func TestDecisionThatNoNodeShowsIsUndone(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	dies, next := gives(t, c, 3)
	set := config(dies)
	ballot := func() nodeset.Ballot { return nodeset.NewBallot(time.Now(), rand.Uint32(), "") }
	goal := change.Goal{Add: []nodeset.Member{{Identity: "0123456789abcdef", Addr: c.Node(3).Addr()}}}
	require.Equal(t, nodeset.Learning, decides(t, dies, set, change.Begin(set, goal, ballot())).Stage)
	require.NoError(t, dies.Close(context.Background()))
	require.NoError(t, c.Node(3).Kill())

	hold := held(t, next, "first")
	kept := keeps(t, next, hold)
	require.NoError(t, Run(minute(t), next, Exchange{Undo: true}))
	require.NoError(t, Run(minute(t), next, Exchange{Remove: c.Addrs()[:1]}))
	assert.Equal(t, c.Addrs()[1:3], nodesOf(next))
	kept()
	hold.Release()
}

// A member that hangs is removed as one that is down: no step waits for it.
func TestExchangeOfAHungNode(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	operator, _ := gives(t, c, 3)
	hold := held(t, operator, "first")
	kept := keeps(t, operator, hold)
	require.NoError(t, c.Node(2).Stop())
	defer func() { assert.NoError(t, c.Node(2).Cont()) }()
	began := time.Now()
	require.NoError(t, Run(minute(t), operator, Exchange{Remove: c.Addrs()[2:3]}))
	t.Log(time.Since(began))
	assert.Equal(t, c.Addrs()[:2], nodesOf(operator))
	kept()
	hold.Release()
}

// A node that dies while it enters is given up when it has not answered for a
// guard time, in each stage. The set is as before.
func TestNodeThatDiesWhileItEntersIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"learning", "joint"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			c := redistest.Start(t, 3)
			operator, q := gives(t, c, 1)
			reached := make(chan struct{}, 100)
			ended := make(chan error, 1)
			go func() {
				ended <- Run(minute(t), operator, Exchange{Add: c.URLs()[1:], Progress: func(p Progress) {
					if p.Stage == stage {
						reached <- struct{}{}
					}
				}})
			}()
			gone(t, reached)
			require.NoError(t, c.Node(1).Kill())
			require.NoError(t, c.Node(2).Kill())
			err := <-ended
			require.ErrorIs(t, err, fault.ErrNoQuorum)
			require.ErrorContains(t, err, "has not answered for")
			require.ErrorContains(t, err, "the set is as it was before")
			assert.Equal(t, c.Addrs()[:1], nodesOf(operator))
			require.Eventually(t, func() bool { return len(nodesOf(q)) == 1 }, time.Minute, time.Millisecond)
			held(t, q, "n").Release()
		})
	}
}

// A call that ends right after its change was decided, and before it has looked
// at the nodes again, undoes the change.
func TestExchangeThatEndsAsItsChangeIsDecided(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	operator, q := gives(t, c, 3)
	for range 3 {
		ctx, cancel := context.WithCancel(minute(t))
		before := config(operator).Stamp.Epoch()
		go func() {
			for ctx.Err() == nil && config(operator).Stamp.Epoch() == before {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		err := Run(ctx, operator, Exchange{Add: c.URLs()[3:]})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "the set is as it was before")
	}
	// It follows.
	require.Eventually(t, func() bool { return slices.Equal(c.Addrs()[:3], nodesOf(q)) },
		time.Minute, time.Millisecond)
}

// All nodes lose their data while the only node of a set becomes three, and a
// client records a new set. The error does not say that the set is as it was
// before.
func TestExchangeOfASetThatIsForgotten(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	operator, q := gives(t, c, 1)
	held(t, q, "n").Release()
	learning, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		ended <- Run(minute(t), operator, Exchange{Add: c.URLs()[1:], Progress: func(p Progress) {
			if p.Stage == "learning" {
				learning <- struct{}{}
			}
		}})
	}()
	gone(t, learning)
	for i := range 3 {
		require.NoError(t, c.Node(i).Restart())
	}
	err := <-ended
	require.ErrorContains(t, err, "have lost their data, and a client has recorded a new set; "+
		"the set is "+c.Addrs()[0])
	assert.NotContains(t, err.Error(), "as it was before")
}

// A call that ends half-way says how to go on, or to give up the change.
func TestExchangeThatIsLeftHalfWay(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	dies, next := gives(t, c, 3)
	learning, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		ended <- Run(minute(t), dies, Exchange{Add: c.URLs()[3:], Progress: func(p Progress) {
			if p.Stage == "learning" {
				learning <- struct{}{}
			}
		}})
	}()
	gone(t, learning)
	require.NoError(t, dies.Close(minute(t)))
	require.ErrorContains(t, <-ended, "run the same command again to finish it, or \"quorate members undo\"")
	require.NoError(t, Run(minute(t), next, Exchange{Add: c.URLs()[3:]}))
	assert.Equal(t, c.Addrs(), nodesOf(next))
}

// A set of one node with a skew of 0 does not grow: the clocks of several nodes
// differ.
func TestSetWithoutASkewDoesNotGrow(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	set := exchangeSettings()
	set.Skew = 0
	operator := opened(t, set, c.Node(0))
	require.NoError(t, operator.Bootstrap(minute(t)))
	err := Run(minute(t), operator, Exchange{Add: c.URLs()[1:]})
	require.ErrorIs(t, err, fault.ErrInvalid)
	require.ErrorContains(t, err,
		"first run quorate members set --guard 20s, then quorate members set --skew 2s --yes")
	assert.Equal(t, uint64(1), config(operator).Stamp.Epoch())

	require.NoError(t, Run(minute(t), operator, Exchange{Shared: &nodeset.Shared{Guard: 20 * time.Second}}))
	require.NoError(t, Run(minute(t), operator,
		Exchange{Shared: &nodeset.Shared{Skew: 2 * time.Second}}))
	assert.Equal(t, 2*time.Second, config(operator).Skew())
}

// A guard time that is longer than the nodes' memory silences them. Whoever
// allows the change hears for how long.
func TestALongerGuardTimeThatSilencesTheNodes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	operator := started(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2))
	held(t, operator, "n").Release() // the nodes record their set without Bootstrap
	var ends Ends
	stop := errors.New("not allowed")
	err := Run(minute(t), operator, Exchange{Shared: &nodeset.Shared{Guard: time.Hour},
		Allow: func(_ *nodeset.Configuration, e Ends) error { ends = e; return stop }})
	require.ErrorIs(t, err, stop)
	assert.Greater(t, ends.Silent, 50*time.Minute)
	assert.LessOrEqual(t, ends.Silent, time.Hour)

	c = redistest.Start(t, 3)
	operator, _ = gives(t, c, 3)
	err = Run(minute(t), operator, Exchange{Shared: &nodeset.Shared{Guard: time.Hour},
		Allow: func(_ *nodeset.Configuration, e Ends) error { ends = e; return stop }})
	require.ErrorIs(t, err, stop)
	assert.Zero(t, ends.Silent, "an operator has declared them new")
}

// The nodes that decide lack a right for good. The exchange says so, and does
// not wait until its context ends. Nothing has changed.
func TestExchangeThatIsRefusedForGood(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	operator, _ := gives(t, c, 3)
	was := config(operator).Stamp
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Do(t.Context(), "ACL", "SETUSER", "default", "-hset", "-set").Err())
	}
	err := Run(minute(t), operator, Exchange{Shared: &nodeset.Shared{Guard: 6 * time.Second}})
	require.ErrorIs(t, err, fault.ErrNoQuorum)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, " refused: ")
	assert.Equal(t, was, config(operator).Stamp)
}

// A guard time that no ttl fits is refused before anything changes. One that
// the operator's own ttl does not fit is not, and neither is the way back.
func TestGuardTimeBelowTheOperatorsTTL(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	operator, _ := gives(t, c, 1)
	require.ErrorIs(t, Run(minute(t), operator, Exchange{Shared: &nodeset.Shared{Guard: time.Millisecond}}),
		fault.ErrInvalid)
	for _, guard := range []time.Duration{3 * time.Second, 4500 * time.Millisecond} {
		require.NoError(t, Run(minute(t), operator, Exchange{Shared: &nodeset.Shared{Guard: guard}}))
		assert.Equal(t, guard, config(operator).Guard())
	}
}

// Undoing has a bound of its own: it goes on when the caller waits no longer,
// and ends with that bound, or with Close.
func TestUndoingIsStoppedByItsBoundAndByClose(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q, _ := gives(t, c, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := asker{&exchange{q: q, set: q.Set}, ctx}
	require.True(t, a.Stopped())
	a.Within(0, func(io change.IO) { assert.True(t, io.Stopped()) })
	a.Within(time.Hour, func(io change.IO) {
		assert.False(t, io.Stopped())
		require.NoError(t, q.Close(minute(t)))
		assert.Eventually(t, io.Stopped, time.Minute, time.Millisecond)
	})
}
