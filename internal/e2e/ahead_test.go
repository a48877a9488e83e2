package e2e_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/semaphore"
)

// A node whose clock is wrong does not lead a client's tickets: they are the
// median of the nodes' clocks. Check names the node.
func TestNodeWithAWrongClock(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3, redistest.WithClock())
	require.NoError(t, c.Node(0).SetClock(-time.Hour, 1))
	q := e2e.Open(t, c, e2e.Timing(2*time.Second))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	assert.WithinDuration(t, time.Now(), time.UnixMicro(int64(m.Lease().Token()/core.MaxPasses)), 10*time.Second)
	m.Unlock()
	r, err := q.Check(deadline(t))
	require.NoError(t, err)
	assert.Contains(t, strings.Join(r.Nodes[0].Warnings, "\n"), "its clock differs from the median")
	for _, n := range r.Nodes[1:] {
		assert.Less(t, n.Offset.Abs(), time.Minute)
	}
}

// Check judges clocks by the skew of the set, whatever a client was given.
func TestSkewOfTheSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3, redistest.WithClock())
	require.NoError(t, c.Node(0).SetClock(3*time.Second, 1))
	wide := e2e.Open(t, c, quorate.WithTTL(time.Second), quorate.WithSkew(6*time.Second),
		quorate.WithGuard(14*time.Second))
	none := e2e.Open(t, c, quorate.WithTTL(time.Second), quorate.WithSkew(0), quorate.WithGuard(14*time.Second))
	for _, q := range []*quorate.Quorum{wide, none} {
		r, err := q.Check(deadline(t))
		require.NoError(t, err)
		assert.Equal(t, 6*time.Second, r.Set.Skew)
		for _, n := range r.Nodes {
			assert.Empty(t, n.Warnings)
		}
	}
}

// A record that is forged on one node of three, in the far future, or left
// there by an older release with a wrong clock, keeps no client out, is not
// believed, and goes with the next write.
func TestForgedRecord(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(time.Second))
	forge := func(name string) {
		t.Helper()
		const id = "ffffffffffffffffffffffffffffffff"
		record := "0 9007199254740991 " + id + " 9007199254740991 " + id + " 1 0 0 forged"
		require.NoError(t, c.Node(0).Client().Set(t.Context(), "quorate:{"+name+"}:r", record, 0).Err())
	}
	forge("e")
	forge("o")
	before := c.Calls(t, "evalsha")
	e := leader.New(q, "e", leader.WithID("me"))
	require.NoError(t, e.Campaign(deadline(t), ""))
	l, err := e.Leader(deadline(t))
	require.NoError(t, err)
	assert.Equal(t, "me", l.ID)
	o := once.New(q, "o")
	ran := 0
	require.NoError(t, o.DoContext(deadline(t), func(context.Context) error { ran++; return nil }))
	assert.Equal(t, 1, ran)
	require.NoError(t, o.Reset(deadline(t)))
	require.NoError(t, e.Resign(deadline(t)))
	assert.Less(t, c.Calls(t, "evalsha")-before, 1000)
	for _, name := range []string{"e", "o"} {
		require.True(t, e2e.Eventually(func() bool {
			v, err := c.Node(0).Client().Get(t.Context(), "quorate:{"+name+"}:r").Result()
			return err == nil && !strings.Contains(v, "9007199254740991")
		}), "the node has the true record of %s again", name)
	}
}

// A run that is superseded learns what superseded it, and is above that the
// next time. One that cannot be, since no node gives a ticket so far ahead,
// asks ever more rarely.
func TestSupersededRun(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Guarded(2*time.Second, 40*time.Second))
	promise := func(name string, ahead time.Duration) time.Time {
		t.Helper()
		const id = "ffffffffffffffffffffffffffffffff"
		at := time.Now().Add(ahead)
		record := "0 " + strconv.FormatInt(at.UnixMicro(), 10) + " " + id + " 0 " + strings.Repeat("0", 32) +
			" 0 0 0 "
		for i := range c.Len() {
			require.NoError(t, c.Node(i).Client().Set(t.Context(), "quorate:{"+name+"}"+":r", record, time.Hour).Err())
		}
		return at
	}
	at := promise("e", 18*time.Second)
	e := leader.New(q, "e")
	require.NoError(t, e.Campaign(deadline(t), ""))
	assert.Greater(t, int64(e.Lease().Token()/core.MaxPasses), at.UnixMicro())
	require.NoError(t, e.Resign(deadline(t)))
	promise("o", 18*time.Second)
	require.NoError(t, once.New(q, "o").DoContext(deadline(t), func(context.Context) error { return nil }))

	promise("far", time.Hour)
	for _, run := range []func(ctx context.Context) error{
		func(ctx context.Context) error { return leader.New(q, "far").Campaign(ctx, "") },
		once.New(q, "far").Reset,
	} {
		before := c.Calls(t, "evalsha")
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		assert.ErrorIs(t, run(short), context.DeadlineExceeded)
		assert.Less(t, c.Calls(t, "evalsha")-before, 600, "in three seconds")
	}
}

// ahead puts a record into a node that is an hour ahead of its clock, under
// each of the names: as written past the scripts, or left there while a clock
// was wrong.
func ahead(t *testing.T, s *redistest.Server, names ...string) {
	t.Helper()
	const id = "ffffffffffffffffffffffffffffffff"
	at := strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10)
	for _, name := range names {
		require.NoError(t, s.Client().Set(t.Context(), "quorate:"+name+":r",
			"0 "+at+" "+id+" "+at+" "+id+" 1 0 0 1", 0).Err())
	}
}

// A record that is an hour ahead on one node of three is not believed and not
// spread, and keeps no client waiting, whichever node answers first.
func TestRecordAhead(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(time.Second))
	for n := range 10 {
		e, o, s := fmt.Sprint("e", n), fmt.Sprint("o", n), fmt.Sprint("s", n)
		ahead(t, c.Node(0), "{"+e+"}", "{"+o+"}", "{"+s+"}:n")
		election := leader.New(q, e, leader.WithID("me"))
		_, err := election.Leader(deadline(t))
		require.ErrorIs(t, err, leader.ErrNoLeader)
		require.NoError(t, election.Campaign(deadline(t), ""))
		l, err := leader.New(q, e, leader.WithID("other")).Leader(deadline(t))
		require.NoError(t, err)
		require.Equal(t, "me", l.ID)
		require.NoError(t, election.Resign(deadline(t)))

		task, ran := once.New(q, o), 0
		for range 2 {
			require.NoError(t, task.DoContext(deadline(t), func(context.Context) error { ran++; return nil }))
			status, err := task.Status(deadline(t))
			require.NoError(t, err)
			require.Equal(t, once.Done, status.State)
			require.NoError(t, task.Reset(deadline(t)))
		}
		require.Equal(t, 2, ran)

		permits := semaphore.NewWeighted(q, s, 2)
		require.NoError(t, permits.Acquire(deadline(t), 2))
		permits.Release(2)
		require.NoError(t, permits.Resize(deadline(t), 3))
		require.NoError(t, permits.Acquire(deadline(t), 3))
		permits.Release(3)
	}
	for i := range 2 {
		records, err := c.Node(i+1).Client().Keys(t.Context(), "quorate:*:r").Result()
		require.NoError(t, err)
		require.NotEmpty(t, records)
		for _, key := range records {
			v, err := c.Node(i+1).Client().Get(t.Context(), key).Result()
			require.NoError(t, err)
			assert.NotContains(t, v, "ffffffffffffffffffffffffffffffff", key)
		}
	}
}

// Where the other nodes do not suffice, the error of each operation names the
// node that keeps a record of the future, and says what to do. That helps.
func TestRecordAheadIsNamed(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(time.Second))
	ahead(t, c.Node(0), "{o}", "{reset}", "{status}", "{e}", "{campaign}", "{s}:n")
	require.NoError(t, c.Node(1).Kill())
	do := func(ctx context.Context) error {
		return once.New(q, "o").DoContext(ctx, func(context.Context) error { return nil })
	}
	t.Run("operations", func(t *testing.T) {
		for name, op := range map[string]func(ctx context.Context) error{
			"Do":     do,
			"Reset":  once.New(q, "reset").Reset,
			"Status": func(ctx context.Context) error { _, err := once.New(q, "status").Status(ctx); return err },
			"Leader": func(ctx context.Context) error {
				_, err := leader.New(q, "e", leader.WithID("other")).Leader(ctx)
				return err
			},
			"Campaign": func(ctx context.Context) error {
				return leader.New(q, "campaign", leader.WithID("me")).Campaign(ctx, "")
			},
			"Resize": func(ctx context.Context) error { return semaphore.NewWeighted(q, "s", 2).Resize(ctx, 3) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var err error
				assert.True(t, e2e.Eventually(func() bool { // the context may end before the node has answered
					ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
					defer cancel()
					err = op(ctx)
					return err != nil && strings.Contains(err.Error(),
						c.Node(0).Addr()+" has a record of this name that is too far ahead of its clock")
				}), "%v", err)
			})
		}
	})
	require.NoError(t, c.Node(0).Client().Del(t.Context(),
		e2e.MarkerKey(t.Context(), c.Node(0)), "quorate:{o}:r").Err())
	require.NoError(t, c.Node(1).Restart())
	assert.True(t, e2e.Eventually(func() bool { return do(deadline(t)) == nil }))
}
