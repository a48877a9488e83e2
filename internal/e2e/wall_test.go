package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

const year = 365 * 24 * time.Hour

// wallOf has a client's wall clock be off by what is in by.
func wallOf(by *atomic.Int64) quorate.Option {
	return e2e.Setting(func(s *core.Settings) {
		s.Wall = func() time.Time { return time.Now().Add(time.Duration(by.Load())) }
	})
}

// lines is a log that counts its lines.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// A client whose wall clock is wrong is refused with the reason, and is served
// when the clock is right again. It asks the nodes for little meanwhile, leaves
// nothing behind, and keeps what it holds. Others notice nothing.
func TestWrongWallClock(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"ahead": year, "49 h ahead": 49 * time.Hour, "a bit ahead": 3 * time.Second, "behind": -49 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			c := redistest.Start(t, 3)
			healthy := e2e.Open(t, c, e2e.Timing(4*time.Second))
			var off atomic.Int64
			var log lines
			q := e2e.OpenAt(t, c.URLs(), e2e.Timing(4*time.Second), wallOf(&off), quorate.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			held := mutex.New(q, "held")
			require.NoError(t, held.LockContext(deadline(t)))
			lease := held.Lease()

			off.Store(int64(by))
			m := mutex.New(q, "m")
			require.True(t, e2e.Eventually(func() bool {
				if err := m.LockContext(deadline(t)); err != nil {
					require.ErrorIs(t, err, quorate.ErrClock)
					require.ErrorIs(t, err, quorate.ErrNoQuorum)
					assert.Contains(t, err.Error(), "NTP")
					return true
				}
				m.Unlock()
				return false
			}))
			require.True(t, e2e.Eventually(func() bool {
				left, err := e2e.Leftovers(t.Context(), c.Node(0))
				return err == nil && !strings.Contains(strings.Join(left, "\n"), "{m}")
			}), "it has left")
			before := c.Calls(t, "evalsha")
			for range 1000 {
				require.ErrorIs(t, m.LockContext(deadline(t)), quorate.ErrClock)
			}
			assert.Less(t, c.Calls(t, "evalsha")-before, 200, "for 1000 calls that are refused")
			assert.Equal(t, 1, log.count("contradict"))
			r, err := q.Check(deadline(t))
			require.NoError(t, err)
			for _, n := range r.Nodes {
				assert.Contains(t, strings.Join(n.Warnings, "\n"), "clock differs")
			}

			other := mutex.New(healthy, "m")
			require.NoError(t, other.LockContext(deadline(t)))
			assert.WithinDuration(t, time.Now(), time.UnixMicro(int64(other.Lease().Token()/core.MaxPasses)), 10*time.Second)
			other.Unlock()
			off.Store(0)
			require.True(t, e2e.Eventually(func() bool { return m.LockContext(deadline(t)) == nil }), "the clock is right again")
			m.Unlock()
			assert.NoError(t, lease.Context().Err(), "a hold does not rest on wall clocks")
			held.Unlock()
		})
	}
}

// Nothing that a client with a wrong clock did, or tried, keeps the others out:
// no election, no work to be done once, no Resize.
func TestWrongWallClockPoisonsNothing(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	healthy := e2e.Open(t, c, e2e.Timing(time.Second))
	var off atomic.Int64
	off.Store(int64(year))
	q := e2e.OpenAt(t, c.URLs(), e2e.Timing(time.Second), wallOf(&off))
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	assert.ErrorIs(t, leader.New(q, "e", "wrong").Campaign(short, ""), quorate.ErrClock)
	assert.ErrorIs(t, once.New(q, "o").DoContext(short, func(context.Context) error { return nil }), quorate.ErrClock)
	assert.ErrorIs(t, semaphore.NewWeighted(q, "s", 2).Resize(short, 3), quorate.ErrClock)
	e2e.Clean(t, c)

	e := leader.New(healthy, "e", "healthy")
	require.NoError(t, e.Campaign(deadline(t), ""))
	require.NoError(t, e.Resign(deadline(t)))
	o := once.New(healthy, "o")
	require.NoError(t, o.DoContext(deadline(t), func(context.Context) error { return nil }))
	require.NoError(t, o.Reset(deadline(t)))
	require.NoError(t, semaphore.NewWeighted(healthy, "s", 2).Resize(deadline(t), 4))
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
	e := leader.New(q, "e", "me")
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
		record := "0 " + strconv.FormatInt(at.UnixMicro(), 10) + " " + id + " 0 " + strings.Repeat("0", 32) + " 0 0 0 "
		for i := range c.Len() {
			require.NoError(t, c.Node(i).Client().Set(t.Context(), "quorate:{"+name+"}"+":r", record, time.Hour).Err())
		}
		return at
	}
	at := promise("e", 18*time.Second)
	e := leader.New(q, "e", "")
	require.NoError(t, e.Campaign(deadline(t), ""))
	assert.Greater(t, int64(e.Lease().Token()/core.MaxPasses), at.UnixMicro())
	require.NoError(t, e.Resign(deadline(t)))
	promise("o", 18*time.Second)
	require.NoError(t, once.New(q, "o").DoContext(deadline(t), func(context.Context) error { return nil }))

	promise("far", time.Hour)
	before := c.Calls(t, "evalsha")
	short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	assert.ErrorIs(t, leader.New(q, "far", "").Campaign(short, ""), context.DeadlineExceeded)
	assert.Less(t, c.Calls(t, "evalsha")-before, 600, "in three seconds")
}

// Tokens rise whatever a client's wall clock shows, also where it was set back
// a moment ago and no node has contradicted it yet, and the fence has been
// forgotten.
func TestTokensRiseThoughTheWallClockFalls(t *testing.T) {
	for name, once := range map[string]func(q *quorate.Quorum) (uint64, error){
		"try": func(q *quorate.Quorum) (uint64, error) {
			m := mutex.New(q, "m")
			if err := m.TryLockContext(deadline(t)); err != nil {
				return 0, err
			}
			defer m.Unlock()
			return m.Lease().Token(), nil
		},
		"lease": func(q *quorate.Quorum) (uint64, error) {
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			l, err := semaphore.NewWeighted(q, "m", 1).AcquireLease(short, 1)
			if err != nil {
				return 0, err
			}
			defer func() { _ = l.Release() }()
			return l.Token(), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := redistest.Start(t, 3)
			var off atomic.Int64
			q := e2e.Open(t, c, e2e.Timing(time.Second), wallOf(&off))
			first, err := once(q)
			require.NoError(t, err)
			e2e.Clean(t, c)
			for i := range c.Len() { // as after the retention time
				keys, err := c.Node(i).Client().Keys(t.Context(), "quorate:{m}*").Result()
				require.NoError(t, err)
				require.NotEmpty(t, keys)
				require.NoError(t, c.Node(i).Client().Del(t.Context(), keys...).Err())
			}
			off.Store(int64(-time.Hour))
			second, err := once(q)
			if err == nil {
				assert.Greater(t, second, first)
			}
			assert.ErrorIs(t, err, quorate.ErrNoQuorum)
			e2e.Clean(t, c)
		})
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
		require.NoError(t, s.Client().Set(t.Context(), "quorate:"+name+":r", "0 "+at+" "+id+" "+at+" "+id+" 1 0 0 1", 0).Err())
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
		election := leader.New(q, e, "me")
		_, err := election.Leader(deadline(t))
		require.ErrorIs(t, err, leader.ErrNoLeader)
		require.NoError(t, election.Campaign(deadline(t), ""))
		l, err := leader.New(q, e, "other").Leader(deadline(t))
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
			"Do":       do,
			"Reset":    once.New(q, "reset").Reset,
			"Status":   func(ctx context.Context) error { _, err := once.New(q, "status").Status(ctx); return err },
			"Leader":   func(ctx context.Context) error { _, err := leader.New(q, "e", "other").Leader(ctx); return err },
			"Campaign": func(ctx context.Context) error { return leader.New(q, "campaign", "me").Campaign(ctx, "") },
			"Resize":   func(ctx context.Context) error { return semaphore.NewWeighted(q, "s", 2).Resize(ctx, 3) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var err error
				assert.True(t, e2e.Eventually(func() bool { // the context may end before the node has answered
					ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
					defer cancel()
					err = op(ctx)
					return err != nil && strings.Contains(err.Error(), c.Node(0).Addr()+" keeps a record of this name that is too far ahead of its clock")
				}), "%v", err)
			})
		}
	})
	require.NoError(t, c.Node(0).Client().Del(t.Context(), e2e.MarkerKey(t.Context(), c.Node(0)), "quorate:{o}:r").Err())
	require.NoError(t, c.Node(1).Restart())
	assert.True(t, e2e.Eventually(func() bool { return do(deadline(t)) == nil }))
}
