package period_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/period"
	"github.com/quorate/quorate/quoratetest"
)

// soon is a context of the bubble: a call that waits for longer is stuck.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// runs counts the runs of each period, and of those that run at a time.
type runs struct {
	mu     sync.Mutex
	counts map[time.Time]int
	tokens []uint64
	now    int
}

// job is a function of a Period that takes d.
func (r *runs) job(t *testing.T, every, d time.Duration) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.counts == nil {
			r.counts = map[time.Time]int{}
		}
		start := period.Start(ctx)
		assert.Equal(t, time.Now().Truncate(every).UTC(), start, "it begins within its period")
		r.counts[start]++
		r.tokens = append(r.tokens, period.Lease(ctx).Token())
		r.now++
		assert.Equal(t, 1, r.now, "runs at a time")
		r.mu.Unlock()
		time.Sleep(d)
		r.mu.Lock()
		r.now--
		return nil
	}
}

// judge checks that each of the periods has had one run, in order.
func (r *runs) judge(t *testing.T, begin time.Time, every time.Duration, periods int) {
	for k := range periods {
		require.Equal(t, 1, r.counts[begin.Add(time.Duration(k)*every).UTC()], "period %d", k)
	}
	for at, n := range r.counts {
		require.Equal(t, 1, n, at)
	}
	for i, token := range r.tokens[1:] {
		require.Greater(t, token, r.tokens[i])
	}
}

// Five processes whose schedulers' clocks are apart by two seconds, the skew,
// call Do for a thousand periods. Each has one run, however long that takes: a
// locker would run a job of a millisecond a second time, for a scheduler that
// is late.
func TestOncePerPeriod(t *testing.T) {
	for took, periods := range map[time.Duration]int{0: 100, time.Millisecond: 1000, 3 * time.Second: 100} {
		t.Run(took.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { oncePerPeriod(t, took, periods) })
		})
	}
}

func oncePerPeriod(t *testing.T, took time.Duration, periods int) {
	const every = 5 * time.Second
	c := quoratetest.New(t, 3)
	begin := time.Now().Truncate(every).Add(2 * every)
	var r runs
	var all sync.WaitGroup
	for i := range 5 {
		p := period.New(c.Quorum(), "report", every)
		all.Go(func() {
			// From one second early to one second late. The early
			// ones call in the period before. There is one call
			// more, for the runs of 3 s: the last period's begins
			// when that of the one before has ended.
			off := time.Duration(i-2) * time.Second / 2
			for k := range periods + 1 {
				time.Sleep(time.Until(begin.Add(time.Duration(k)*every + off)))
				_, err := p.Do(soon(t), r.job(t, every, took))
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	r.judge(t, begin, every, periods)
}

// Wait begins each period, by the nodes' clocks, in each process.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every, periods = time.Minute, 50
		c := quoratetest.New(t, 3)
		ctx, cancel := context.WithTimeout(t.Context(), periods*every-every/2)
		defer cancel()
		begin := time.Now().Truncate(every)
		var r runs
		var all sync.WaitGroup
		for range 3 {
			p := period.New(c.Quorum(), "report", every)
			all.Go(func() {
				woken := 0
				for ; p.Wait(ctx) == nil; woken++ {
					_, err := p.Do(ctx, r.job(t, every, time.Millisecond))
					assert.NoError(t, err)
				}
				assert.InDelta(t, periods, woken, 1)
			})
		}
		all.Wait()
		r.judge(t, begin, every, periods)
	})
}

// A run that lasts into later periods is the only one meanwhile. Other calls
// return at once, and what was missed is not made up for.
func TestOverrun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = time.Minute
		c := quoratetest.New(t, 3)
		a, b := period.New(c.Quorum(), "report", every), period.New(c.Quorum(), "report", every)
		over := make(chan struct{})
		go func() {
			defer close(over)
			ran, err := a.Do(soon(t), func(context.Context) error { time.Sleep(5 * every); return nil })
			assert.True(t, ran)
			assert.NoError(t, err)
		}()
		synctest.Wait()
		last, err := b.Last(soon(t))
		require.NoError(t, err)
		assert.Equal(t, period.Began, last.State)
		assert.Positive(t, last.Left)
		for range 4 {
			time.Sleep(every)
			called := time.Now()
			ran, err := b.Do(soon(t), func(context.Context) error { t.Error("beside a run"); return nil })
			assert.False(t, ran)
			require.NoError(t, err)
			assert.Less(t, time.Since(called), time.Second, "it was not waited for")
		}
		<-over
		count := 0
		for range 3 {
			_, err := b.Do(soon(t), func(context.Context) error { count++; return nil })
			require.NoError(t, err)
		}
		assert.Equal(t, 1, count)
	})
}

// Calls at one moment give one run, also when it takes long: those that have
// found nothing recorded learn of it while they wait for the claim.
func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		var r runs
		var all sync.WaitGroup
		for range 20 {
			p := period.New(c.Quorum(), "report", time.Hour)
			all.Go(func() {
				called := time.Now()
				ran, err := p.Do(soon(t), r.job(t, time.Hour, time.Minute))
				assert.NoError(t, err)
				assert.True(t, ran || time.Since(called) < 5*time.Second)
			})
		}
		all.Wait()
		assert.Len(t, r.tokens, 1)
	})
}

// A call waits for nodes as long as its context lasts. When they are back, the
// period has its run.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		p := period.New(c.Quorum(), "report", time.Hour)
		c.Stop(0)
		c.Stop(1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ran, err := p.Do(ctx, func(context.Context) error { return nil })
		assert.False(t, ran)
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		ran, err = p.Do(ctx, func(context.Context) error { return nil })
		assert.False(t, ran)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = p.Last(ctx)
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		c.Start(0)
		c.Start(1)
		ran, err = p.Do(soon(t), func(context.Context) error { return nil })
		require.NoError(t, err)
		assert.True(t, ran)
	})
}

// Lengths may be changed: no period of the shorter one has two runs.
func TestLengthsThatDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		minutes, hours := period.New(c.Quorum(), "report", time.Minute), period.New(c.Quorum(), "report", time.Hour)
		do := func(p *period.Period) bool {
			ran, err := p.Do(soon(t), func(context.Context) error { return nil })
			require.NoError(t, err)
			return ran
		}
		time.Sleep(5 * time.Minute)
		assert.True(t, do(hours))
		assert.True(t, do(minutes))
		assert.False(t, do(minutes))
		assert.False(t, do(hours))
		time.Sleep(time.Hour)
		assert.True(t, do(hours))
		assert.False(t, do(hours))
	})
}

func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 1)
		q := c.Quorum()
		nothing := func(context.Context) error { return nil }
		assert.PanicsWithValue(t, "quorate: period.New: every 0s: must be a whole number of milliseconds from "+
			"10ms to fifty years", func() { period.New(q, "p", 0) })
		assert.Panics(t, func() { period.New(q, "p", 60*365*24*time.Hour) }, "it would begin in 2030")
		assert.Panics(t, func() { period.New(q, "p", time.Hour, nil) })
		assert.Panics(t, func() { period.New(q, "p", time.Hour, quorate.WithTTL(0)) })
		assert.Panics(t, func() { _, _ = new(period.Period).Last(t.Context()) })
		p := period.New(q, "p", time.Hour)
		assert.PanicsWithValue(t, "quorate: period.Do: the function is nil",
			func() { _, _ = p.Do(t.Context(), nil) })
		assert.Nil(t, period.Lease(t.Context()))
		assert.Zero(t, period.Start(t.Context()))

		bad := period.New(q, "{p}", time.Hour)
		_, err := bad.Last(t.Context())
		require.ErrorIs(t, err, quorate.ErrInvalid)
		_, err = bad.Do(t.Context(), nothing)
		require.ErrorIs(t, err, quorate.ErrInvalid)
		require.ErrorIs(t, bad.Wait(t.Context()), quorate.ErrInvalid)

		last, err := p.Last(soon(t))
		require.NoError(t, err)
		assert.Zero(t, last)
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, p.Wait(ctx))
		cancel()
		require.ErrorIs(t, p.Wait(ctx), context.Canceled)
		_, err = p.Do(ctx, nothing)
		require.ErrorIs(t, err, context.Canceled)

		m := mutex.New(q, "m")
		require.NoError(t, m.LockContext(soon(t)))
		require.NoError(t, q.Close())
		require.ErrorIs(t, p.Wait(t.Context()), quorate.ErrClosed)
		_, err = p.Do(t.Context(), nothing)
		require.ErrorIs(t, err, quorate.ErrClosed)
		_, err = p.Last(t.Context())
		require.ErrorIs(t, err, quorate.ErrClosed)
	})
}
