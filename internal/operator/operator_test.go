package operator

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A node is replaced, then two are added, then all but one removed. Holds stay,
// and locks go on.
func TestExchange(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 6)
	set := exchangeSettings()
	operator, q := gives(t, c, 3)
	first := held(t, q, "first")
	kept := keeps(t, q, first)
	stop := users(t, q, operator, q)
	step := func(add, remove []string) {
		t.Helper()
		began := time.Now()
		require.NoError(t, Run(minute(t), operator, Exchange{Add: add, Remove: remove,
			Progress: func(p Progress) { t.Logf("%v %+v", time.Since(began).Round(time.Millisecond), p) }}))
		t.Log(config(operator))
		kept()
	}
	step(c.URLs()[3:4], c.URLs()[2:3])
	step(c.URLs()[4:6], nil)
	late := opened(t, set, c.Node(3), c.Node(4), c.Node(5))
	held(t, late, "late").Release()
	step(nil, []string{c.Node(0).Addr(), c.Node(3).Addr(), c.Node(4).Addr(), c.Node(5).Addr()})
	assert.Equal(t, []string{c.Node(1).Addr()}, config(operator).Addrs())
	kept()
	n, longest := stop()
	t.Logf("%d locks, the longest wait %v", n, longest)
	first.Release()
}

// A node that is gone for good is replaced without it.
func TestExchangeOfADeadNode(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	operator, q := gives(t, c, 3)
	first := held(t, q, "first")
	kept := keeps(t, q, first)
	require.NoError(t, c.Node(1).Kill())
	stop := users(t, q, operator)
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:], Remove: c.URLs()[1:2]}))
	assert.Equal(t, []string{c.Node(0).Addr(), c.Node(2).Addr(), c.Node(3).Addr()}, nodesOf(operator))
	require.Eventually(t, func() bool { return len(nodesOf(q)) == 3 && nodesOf(q)[2] == c.Node(3).Addr() },
		time.Minute, time.Millisecond)
	stop()
	kept()
	first.Release()
}

// What makes no sense, and a server that cannot be a node of the set, is
// refused at once, and nothing is begun.
func TestExchangeIsRefused(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 6)
	operator, _ := gives(t, c, 3)
	loner, _ := gives(t, redistest.Start(t, 1), 1)
	blank := opened(t, exchangeSettings(), c.Node(5))
	require.NoError(t, c.Node(4).Kill())
	localhost := func(i int) string { return "localhost" + c.Node(i).Addr()[len("127.0.0.1"):] }
	cases := []struct {
		x    Exchange
		says string
	}{
		{Exchange{}, "there is nothing to change"},
		{Exchange{Undo: true, Remove: c.URLs()[:1]}, "not both"},
		{Exchange{Remove: c.URLs()[3:4]}, "is not a node of the set"},
		{Exchange{Remove: c.URLs()[:3]}, "no node of the set would be left"},
		{Exchange{Add: nodesOf(loner)}, "has the data of another set"},
		{Exchange{Add: c.URLs()[4:5]}, "cannot be added"},
		{Exchange{Add: []string{localhost(0)}}, "is the same server as"},
		{Exchange{Add: []string{c.Node(3).Addr(), localhost(3)}}, "is the same server as"},
		{Exchange{Add: []string{"redis://u:secret@host:x"}}, "the URL must look like"},
		{Exchange{Move: []Move{{From: c.Addrs()[0], To: c.Addrs()[3]}}}, "does not have the data of"},
		{Exchange{Move: []Move{{From: c.Addrs()[3], To: c.Addrs()[5]}}}, "is not a node of the set"},
		{Exchange{Add: []string{c.URLs()[3] + "/1"}}, "means database 1"},
		{Exchange{Add: []string{c.Addrs()[3] + "/1"}, Remove: c.Addrs()[2:3]}, "use database 0"},
		{Exchange{Move: []Move{{From: c.Addrs()[0], To: "redis://" + localhost(0) + "?db=1", Keep: true}}},
			"means database 1"},
	}
	for _, k := range cases {
		err := Run(minute(t), operator, k.x)
		require.ErrorIs(t, err, fault.ErrInvalid, k.says)
		assert.ErrorContains(t, err, k.says)
		assert.NotContains(t, err.Error(), "secret")
	}
	copied := c.Node(0).Client().Get(t.Context(), script.SetKey(exchangeSettings().Prefix)).Val()
	require.NoError(t, c.Node(3).Client().Set(t.Context(),
		script.SetKey(exchangeSettings().Prefix), copied, 0).Err())
	assert.ErrorContains(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:4]}),
		"it is the member "+c.Node(0).Addr()+", or has that member's data")
	assert.Equal(t, uint64(1), config(operator).Stamp.Epoch())
	assert.ErrorContains(t, Run(minute(t), blank, Exchange{Remove: c.URLs()[5:]}), "not recorded a set")
}

// Clients that are given the new list before the exchange use the set, and work
// on afterwards.
func TestExchangeForClientsWithTheNewList(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	operator, q := gives(t, c, 3)
	early := opened(t, exchangeSettings(), c.Node(3), c.Node(0), c.Node(1))
	first := held(t, early, "first")
	finds(t, q, "first", first)
	kept := keeps(t, early, first)
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:], Remove: c.URLs()[2:3]}))
	kept()
	first.Release()
	held(t, early, "first").Release()
}

// A new node that dies is given up: the set is as before, and the next call
// adds another one.
func TestExchangeIsGivenUp(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	operator, q := gives(t, c, 3)
	first := held(t, q, "first")
	kept := keeps(t, q, first)
	began := make(chan struct{}, 100)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(minute(t))
	go func() {
		ended <- Run(ctx, operator, Exchange{Add: c.URLs()[3:4], Progress: func(p Progress) {
			if p.Stage == "learning" {
				began <- struct{}{}
			}
		}})
	}()
	gone(t, began)
	require.NoError(t, c.Node(3).Kill())
	cancel()
	err := <-ended
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "the set is as it was before")
	assert.Equal(t, c.Addrs()[:3], nodesOf(operator))
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[4:]}))
	assert.Equal(t, []string{c.Addrs()[0], c.Addrs()[1], c.Addrs()[2], c.Addrs()[4]}, nodesOf(operator))
	kept()
	first.Release()
}

// The next call finishes what an operator that died has left half-way, in each
// stage, or undoes it.
func TestExchangeIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"learning", "joint"} {
		for _, undo := range []bool{false, true} {
			t.Run(stage, func(t *testing.T) {
				t.Parallel()
				c := redistest.Start(t, 4)
				first, next := gives(t, c, 3)
				hold := held(t, next, "first")
				kept := keeps(t, next, hold)
				reached := make(chan struct{}, 100)
				ended := make(chan error, 1)
				x := Exchange{Add: c.URLs()[3:], Remove: c.URLs()[:1]}
				dies := x
				dies.Progress = func(p Progress) {
					if p.Stage == stage && p.Await != "" {
						reached <- struct{}{}
					}
				}
				go func() { ended <- Run(minute(t), first, dies) }()
				gone(t, reached)
				require.NoError(t, first.Close(context.Background()))
				err := <-ended
				require.ErrorIs(t, err, fault.ErrClosed)
				want := []string{c.Addrs()[1], c.Addrs()[2], c.Addrs()[3]}
				if undo {
					x, want = Exchange{Undo: true}, c.Addrs()[:3]
				}
				require.NoError(t, Run(minute(t), next, x))
				assert.Equal(t, want, nodesOf(next))
				kept()
				hold.Release()
			})
		}
	}
}

// Two operators exchange nodes at once: each does what it was asked for, one
// after the other.
func TestTwoOperators(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	a, b := gives(t, c, 3)
	hold := held(t, a, "first")
	kept := keeps(t, a, hold)
	stop := users(t, a, b)
	ended := make(chan error, 2)
	go func() { ended <- Run(minute(t), a, Exchange{Add: c.URLs()[3:4], Remove: c.URLs()[:1]}) }()
	go func() { ended <- Run(minute(t), b, Exchange{Add: c.URLs()[4:5], Remove: c.URLs()[1:2]}) }()
	assert.NoError(t, <-ended)
	assert.NoError(t, <-ended)
	stop()
	for _, q := range []*core.Quorum{a, b} {
		require.Eventually(t, func() bool { return config(q).Stamp.Epoch() >= 7 }, time.Minute, time.Millisecond)
		assert.ElementsMatch(t, []string{c.Addrs()[2], c.Addrs()[3], c.Addrs()[4]}, nodesOf(q))
	}
	kept()
	hold.Release()
}

// What was decided and is served by no node yet is found in the registers, when
// a node that lost its data has the others asked.
func TestDecisionIsFoundInTheRegisters(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	operator, _ := gives(t, c, 3)
	ballot := func() nodeset.Ballot { return nodeset.NewBallot(time.Now(), rand.Uint32(), "") }
	set := change.Begin(config(operator), change.Goal{Remove: c.Addrs()[:1]}, ballot())
	require.NoError(t, operator.Operate(minute(t), nil))
	operator.Members.Change(-1, func(m *nodeset.Membership) { m.Decide(set) })
	for i := range 3 { // what a node that has not moved is asked for is refused
		require.Eventually(t, func() bool {
			_, _, err := operator.Look(t.Context(), i, set.Stamp)
			return err == nil
		}, time.Minute, time.Millisecond)
	}
	next := change.Finish(set, ballot())
	require.Equal(t, next.String(), decides(t, operator, set, next).String())
	key := exchangeSettings().Prefix + ":{" + nodeset.SuccessorName(set.Stamp) + "}:r"
	for i := range 3 {
		require.Eventually(t, func() bool { return c.Node(i).Client().Exists(t.Context(), key).Val() == 1 },
			time.Minute, 10*time.Millisecond)
	}
	require.NoError(t, c.Node(0).Kill())
	require.NoError(t, c.Node(0).Restart())
	require.Eventually(t, func() bool { return config(operator).Stamp == next.Stamp },
		time.Minute, 10*time.Millisecond)
}
