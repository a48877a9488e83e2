package leader_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/leader"
)

func TestCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es, m := fleet(t, nodes(t), e2e.Timing(quiet), "a", "b")
		a, b := es[0], es[1]
		ctx := soon(t)
		_, err := a.Leader(ctx)
		require.ErrorIs(t, err, leader.ErrNoLeader)
		require.Nil(t, a.Lease())
		require.Equal(t, "a", a.ID())

		before := time.Now()
		require.NoError(t, a.Campaign(ctx, "http://a"))
		first := a.Lease()
		require.NoError(t, first.Context().Err())
		l, err := b.Leader(ctx)
		require.NoError(t, err)
		host, _ := os.Hostname()
		assert.Equal(t, leader.Leader{ID: "a", Value: "http://a", Term: first.Token(), Host: host, PID: os.Getpid(),
			Since: l.Since, Left: l.Left}, l)
		assert.WithinRange(t, l.Since, before.Add(-time.Second), time.Now())
		assert.Greater(t, l.Left, quiet/2)
		assert.LessOrEqual(t, l.Left, quiet)

		next := campaign(ctx, b, "http://b")
		waiters(t, m, 1)
		require.Nil(t, b.Lease())
		require.NoError(t, a.Resign(ctx))
		require.Nil(t, a.Lease())
		require.ErrorIs(t, context.Cause(first.Context()), quorate.ErrReleased)
		require.NoError(t, e2e.Receive(t, next), "at once, not when the lease ends")
		require.Greater(t, b.Lease().Token(), first.Token())
		l, err = a.Leader(ctx)
		require.NoError(t, err)
		assert.Equal(t, "http://b", l.Value)
		assert.Equal(t, b.Lease().Token(), l.Term)

		h, err := a.Holder(ctx)
		require.NoError(t, err)
		assert.Equal(t, quorate.Holder{Token: l.Term, Host: host, PID: os.Getpid(), Left: h.Left, Holders: 1}, h)

		require.NoError(t, b.Resign(ctx))
		_, err = a.Leader(ctx)
		require.ErrorIs(t, err, leader.ErrNoLeader)
		require.ErrorContains(t, err, `leader "e": no leader`)
	})
}

func TestProclaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es, _ := fleet(t, nodes(t), e2e.Timing(quiet), "a", "b")
		a, b := es[0], es[1]
		ctx := soon(t)
		require.ErrorIs(t, a.Proclaim(ctx, "x"), quorate.ErrNotHeld)
		require.NoError(t, a.Campaign(ctx, "one"))
		was, err := b.Leader(ctx)
		require.NoError(t, err)
		for _, value := range []string{"two", "", strings.Repeat("ü", leader.MaxValue/2), "four"} {
			require.NoError(t, a.Proclaim(ctx, value))
			l, err := b.Leader(ctx)
			require.NoError(t, err)
			assert.Equal(t, value, l.Value)
			assert.Equal(t, was.Term, l.Term)
			assert.Equal(t, was.Since, l.Since, "it leads since then")
		}
		require.NoError(t, a.Campaign(ctx, "five"), "it leads already")
		l, err := b.Leader(ctx)
		require.NoError(t, err)
		assert.Equal(t, "five", l.Value)
		assert.Equal(t, was.Term, l.Term)
		require.NoError(t, a.Resign(ctx))
		require.ErrorIs(t, a.Proclaim(ctx, "six"), quorate.ErrNotHeld)
		_, err = b.Leader(ctx)
		require.ErrorIs(t, err, leader.ErrNoLeader)
	})
}

func TestResignOfWhatIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es, _ := fleet(t, nodes(t), e2e.Timing(quiet), "a")
		a := es[0]
		ctx := soon(t)
		require.ErrorIs(t, a.Resign(ctx), quorate.ErrNotHeld)
		require.NoError(t, a.Campaign(ctx, ""))
		require.NoError(t, a.Resign(ctx))
		require.ErrorIs(t, a.Resign(ctx), quorate.ErrNotHeld)
	})
}

func TestBadInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		q := c.Quorum()
		ctx := soon(t)
		for _, e := range []*leader.Election{
			leader.New(q, "", leader.WithID("a")),
			leader.New(q, "{e}", leader.WithID("a")),
			leader.New(q, strings.Repeat("e", 2000), leader.WithID("a")),
			leader.New(q, "e", leader.WithID(strings.Repeat("a", leader.MaxID+1))),
			leader.New(q, "e", leader.WithID("\xff")),
			leader.New(q, "e", leader.WithValue(strings.Repeat("v", leader.MaxValue+1))),
			leader.New(q, "e", leader.WithValue("\xff")),
		} {
			require.ErrorIs(t, e.Campaign(ctx, ""), quorate.ErrInvalid)
			require.ErrorIs(t, e.Proclaim(ctx, ""), quorate.ErrInvalid)
			require.ErrorIs(t, e.Resign(ctx), quorate.ErrInvalid)
			require.ErrorIs(t, e.Run(ctx, leader.Callbacks{OnStartedLeading: func(context.Context, quorate.Lease) {}}),
				quorate.ErrInvalid)
			_, err := e.Leader(ctx)
			require.ErrorIs(t, err, quorate.ErrInvalid)
			_, err = e.Holder(ctx)
			require.ErrorIs(t, err, quorate.ErrInvalid)
			seen := 0
			for _, err := range e.Observe(ctx) {
				require.ErrorIs(t, err, quorate.ErrInvalid)
				seen++
			}
			require.Equal(t, 1, seen)
			require.Nil(t, e.Lease())
			require.NoError(t, e.HealthCheck(0))
		}
		e := leader.New(q, "e", leader.WithID("a"))
		for _, value := range []string{strings.Repeat("v", leader.MaxValue+1), "\xff"} {
			require.ErrorIs(t, e.Campaign(ctx, value), quorate.ErrInvalid)
			require.ErrorIs(t, e.Proclaim(ctx, value), quorate.ErrInvalid)
		}
		require.ErrorContains(t, e.Campaign(ctx, strings.Repeat("v", leader.MaxValue+1)),
			"65537 bytes long; at most 65536")
		require.ErrorIs(t, e.Run(ctx, leader.Callbacks{}), quorate.ErrInvalid)
		require.ErrorContains(t, e.Run(ctx, leader.Callbacks{}), "OnStartedLeading")

		require.NotEmpty(t, leader.New(q, "e").ID())
		require.NotEqual(t, leader.New(q, "e").ID(), leader.New(q, "e", leader.WithID("")).ID())
		require.Panics(t, func() { leader.New(q, "e", leader.WithID("a"), quorate.WithTTL(-1)) })
		require.Panics(t, func() { _ = new(leader.Election).Campaign(ctx, "") })
		require.Panics(t, func() { _ = (*leader.Election)(nil).HealthCheck(0) })

		ended, cancel := context.WithCancel(ctx)
		cancel()
		require.ErrorIs(t, e.Campaign(ended, ""), context.Canceled)
		require.ErrorIs(t, e.Run(ended,
			leader.Callbacks{OnStartedLeading: func(context.Context, quorate.Lease) {}}), context.Canceled)
		for range e.Observe(ended) {
			require.Fail(t, "nothing is to be seen when the context has ended")
		}
	})
}

// A name that something else has recorded under.
func TestNotALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := nodes(t).Quorum()
		c := core.CoreOf(q)
		spec, err := c.NewSpec(core.Spec{Name: "e", Weight: 1, Capacity: 1,
			Set: core.Override[quorate.Option](c, "test", nil)})
		require.NoError(t, err)
		hold, err := c.Acquire(soon(t), spec, false, nil)
		require.NoError(t, err)
		e := leader.New(q, "e", leader.WithID("a"))
		for i, value := range []string{"not JSON", `{"period":1,"start":0,"token":1,"state":"began"}`} {
			require.NoError(t, c.Register(spec).Put(soon(t), hold, uint64(i), []byte(value), 0))
			_, err = e.Leader(soon(t))
			require.ErrorIs(t, err, quorate.ErrInvalid)
			for _, err := range e.Observe(soon(t)) {
				require.ErrorIs(t, err, quorate.ErrInvalid)
				break
			}
		}
		hold.Release()
		require.NoError(t, e.Campaign(soon(t), "v"), "a leader replaces it")
		l, err := e.Leader(soon(t))
		require.NoError(t, err)
		require.Equal(t, "v", l.Value)
	})
}

func TestCampaignCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		es, m := fleet(t, c, e2e.Timing(800*time.Millisecond), "a", "b")
		a, b := es[0], es[1]
		require.NoError(t, a.Campaign(soon(t), ""))
		require.True(t, e2e.Eventually(func() bool {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := campaign(ctx, b, "")
			waiters(t, m, 1)
			cancel()
			err := e2e.Receive(t, done)
			require.ErrorIs(t, err, context.Canceled)
			waiters(t, m, 0)
			require.Nil(t, b.Lease())
			return errors.Is(err, quorate.ErrHeld) && !errors.Is(err, quorate.ErrNoQuorum) // a majority had told it so
		}))
		require.NoError(t, a.Resign(soon(t)))

		thaw := freeze(c, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		err := b.Campaign(ctx, "")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		_, err = b.Leader(ctx)
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		thaw()
		require.NoError(t, b.Campaign(soon(t), ""), "it can be used again")
		require.NoError(t, b.Resign(soon(t)))
	})
}

// Goroutines that share a value lead together.
func TestCampaignTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es, m := fleet(t, nodes(t), e2e.Timing(quiet), "a", "b")
		a, b := es[0], es[1]
		require.NoError(t, b.Campaign(soon(t), ""))
		one := campaign(soon(t), a, "one")
		waiters(t, m, 1)
		queued := e2e.NewQueued(soon(t))
		two := campaign(queued, a, "two")
		e2e.Receive(t, queued.In())
		ended, cancel := context.WithCancel(t.Context())
		three := campaign(ended, a, "three")
		cancel()
		require.ErrorIs(t, e2e.Receive(t, three), context.Canceled)
		require.NoError(t, b.Resign(soon(t)))
		require.NoError(t, e2e.Receive(t, one))
		require.NoError(t, e2e.Receive(t, two))
		l, err := a.Leader(soon(t))
		require.NoError(t, err)
		require.Equal(t, "two", l.Value)
		require.NoError(t, a.Resign(soon(t)))
		require.ErrorIs(t, a.Resign(soon(t)), quorate.ErrNotHeld, "there was one term")
	})
}

func TestMutexOfTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es, m := fleet(t, nodes(t), e2e.Timing(quiet), "a")
		a := es[0]
		require.NoError(t, a.Campaign(soon(t), ""))
		require.ErrorIs(t, m.TryLockContext(soon(t)), quorate.ErrHeld)
		term := a.Lease().Token()
		require.NoError(t, a.Resign(soon(t)))
		m.Lock()
		require.Greater(t, m.Lease().Token(), term)
		_, err := a.Leader(soon(t))
		require.ErrorIs(t, err, leader.ErrNoLeader)
		done := campaign(soon(t), a, "")
		waiters(t, m, 1)
		m.Unlock()
		require.NoError(t, e2e.Receive(t, done))
		require.NoError(t, a.Resign(soon(t)))
	})
}
