package core

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// decides has the register of a set decide what follows, and returns that.
func decides(t *testing.T, q *Quorum, c, next *nodeset.Configuration) *nodeset.Configuration {
	t.Helper()
	s := change.NewSuccession(c, next, q.set.TTL, q.set.NodeTimeout, protocol.Rules{})
	require.NoError(t, q.succeed(within(t), s))
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
	set := dies.members.config.Load()
	ballot := func() nodeset.Ballot { return nodeset.NewBallot(time.Now(), chance(), "") }
	goal := change.Goal{Add: []nodeset.Member{{Identity: "0123456789abcdef", Addr: c.Node(3).Addr()}}}
	require.Equal(t, nodeset.Learning, decides(t, dies, set, change.Begin(set, goal, ballot())).Stage)
	require.NoError(t, dies.Close(context.Background()))
	require.NoError(t, c.Node(3).Kill())

	hold := held(t, next, "first")
	kept := keeps(t, hold)
	require.NoError(t, next.Exchange(minute(t), Exchange{Undo: true}))
	require.NoError(t, next.Exchange(minute(t), Exchange{Remove: c.Addrs()[:1]}))
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
	kept := keeps(t, hold)
	require.NoError(t, c.Node(2).Stop())
	defer func() { assert.NoError(t, c.Node(2).Cont()) }()
	began := time.Now()
	require.NoError(t, operator.Exchange(minute(t), Exchange{Remove: c.Addrs()[2:3]}))
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
				ended <- operator.Exchange(minute(t), Exchange{Add: c.URLs()[1:], Progress: func(p ExchangeProgress) {
					if p.Stage == stage {
						reached <- struct{}{}
					}
				}})
			}()
			gone(t, reached)
			require.NoError(t, c.Node(1).Kill())
			require.NoError(t, c.Node(2).Kill())
			err := <-ended
			require.ErrorIs(t, err, ErrNoQuorum)
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
		before := operator.members.config.Load().Stamp.Epoch()
		go func() {
			for ctx.Err() == nil && operator.members.config.Load().Stamp.Epoch() == before {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		err := operator.Exchange(ctx, Exchange{Add: c.URLs()[3:]})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "the set is as it was before")
	}
	assert.Equal(t, c.Addrs()[:3], nodesOf(q))
}

// The nodes that decide lack a right for good. The exchange says so, and does
// not wait until its context ends. Nothing has changed.
func TestExchangeThatIsRefusedForGood(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	operator, _ := gives(t, c, 3)
	was := operator.members.config.Load().Stamp
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Do(t.Context(), "ACL", "SETUSER", "default", "-hset", "-set").Err())
	}
	err := operator.Exchange(minute(t), Exchange{Shared: &nodeset.Shared{Guard: 6 * time.Second}})
	require.ErrorIs(t, err, ErrNoQuorum)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, " refuses: ")
	assert.Equal(t, was, operator.members.config.Load().Stamp)
}

// A guard time that no ttl fits is refused before anything changes. One that
// the operator's own ttl does not fit is not, and neither is the way back.
func TestGuardTimeBelowTheOperatorsTTL(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	operator, _ := gives(t, c, 1)
	require.ErrorIs(t, operator.Exchange(minute(t), Exchange{Shared: &nodeset.Shared{Guard: time.Millisecond}}), ErrInvalid)
	for _, guard := range []time.Duration{3 * time.Second, 4500 * time.Millisecond} {
		require.NoError(t, operator.Exchange(minute(t), Exchange{Shared: &nodeset.Shared{Guard: guard}}))
		assert.Equal(t, guard, operator.members.config.Load().Guard())
	}
}
