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
	"github.com/quorate/quorate/internal/testkit/memory"
	"github.com/quorate/quorate/period"
	"github.com/quorate/quorate/quoratetest"
)

// cron is a schedule like a line of cron: an hour (-1: each) and a minute, on
// one day of a month (0: each).
type cron struct{ hour, minute, day, month int }

func (s cron) Next(t time.Time) time.Time {
	day := t.Truncate(24 * time.Hour)
	for range 5 * 366 {
		if s.day == 0 || day.Day() == s.day && int(day.Month()) == s.month {
			for hour := range 24 {
				at := day.Add(time.Duration(60*hour+s.minute) * time.Minute)
				if at.After(t) && (s.hour < 0 || hour == s.hour) {
					return at
				}
			}
		}
		day = day.Add(24 * time.Hour)
	}
	return time.Time{}
}

// nodesAt starts n nodes whose clocks show a time, and returns clients.
func nodesAt(t *testing.T, at time.Time, n, clients int) (qs []*quorate.Quorum) {
	nodes := memory.NewNodes(n)
	for _, n := range nodes {
		n.SetClock(time.Until(at))
	}
	for i := range clients {
		q, err := quorate.New(nodes.Clients(t), nodes.Option(), quorate.WithLogger(nil))
		require.NoError(t, err)
		t.Cleanup(func() { _ = q.Close() })
		if i == 0 {
			require.NoError(t, q.Bootstrap(t.Context()))
		}
		qs = append(qs, q)
	}
	return qs
}

func utc(text string) time.Time {
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return at
}

// Three processes go through nights in which clocks change, and through the end
// of a February. Each time of the schedule has one run. One node and short
// stretches of time are enough for that: each client asks each node every second.
func TestNights(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	daily, hourly := cron{hour: 2, minute: 30}, cron{hour: -1, minute: 30}
	leap := cron{hour: 2, minute: 30, day: 29, month: 2}
	for name, c := range map[string]struct {
		schedule period.Schedule
		from     string // UTC
		lasts    time.Duration
		want     []string // UTC
	}{
		"daily, the hour that is missing": {daily, "2026-03-29 00:25", 70 * time.Minute,
			[]string{"2026-03-29 01:00"}},
		"daily, the hour that comes twice": {daily, "2026-10-25 00:25", 70 * time.Minute,
			[]string{"2026-10-25 00:30"}},
		"hourly, the hour that is missing": {hourly, "2026-03-29 00:25", 70 * time.Minute,
			[]string{"2026-03-29 00:30", "2026-03-29 01:00", "2026-03-29 01:30"}},
		"hourly, the hour that comes twice": {hourly, "2026-10-25 00:25", 130 * time.Minute,
			[]string{"2026-10-25 00:30", "2026-10-25 01:30", "2026-10-25 02:30"}},
		"a leap day":  {leap, "2028-02-29 01:25", 10 * time.Minute, []string{"2028-02-29 01:30"}},
		"no leap day": {leap, "2027-03-01 01:25", 10 * time.Minute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.lasts)
				defer cancel()
				var mu sync.Mutex
				var got []string
				var all sync.WaitGroup
				for _, q := range nodesAt(t, utc(c.from), 1, 3) {
					p := period.NewScheduled(q, "report", c.schedule, period.WithZone(berlin))
					all.Go(func() {
						for p.Wait(ctx) == nil {
							_, err := p.Do(ctx, func(ctx context.Context) error {
								mu.Lock()
								defer mu.Unlock()
								got = append(got, period.Start(ctx).Format("2006-01-02 15:04"))
								return nil
							})
							assert.NoError(t, err)
						}
					})
				}
				all.Wait()
				assert.Equal(t, c.want, got)
			})
		})
	}
}

// Five processes call Do at each time of a schedule, by clocks of their own.
// Each time has one run, and none begins before it.
func TestClocksOfSchedulers(t *testing.T) {
	for name, offs := range map[string][]time.Duration{
		"around":     {-1900, -950, 0, 950, 1900},
		"all early":  {-1900, -1500, -1000, -500, -1},
		"all late":   {1, 500, 1000, 1500, 1900},
		"one, early": {-1900},
	} {
		for _, scheduled := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { clocksOfSchedulers(t, offs, scheduled) })
			})
		}
	}
}

func clocksOfSchedulers(t *testing.T, offs []time.Duration, scheduled bool) {
	const minutes = 20
	c := quoratetest.New(t, 3)
	begin := time.Now().Truncate(time.Minute).Add(time.Minute)
	var r runs
	var all sync.WaitGroup
	for _, off := range offs {
		p := period.New(c.Quorum(), "report", time.Minute)
		if scheduled {
			p = period.NewScheduled(c.Quorum(), "report", multiples(time.Minute))
		}
		_, err := p.Do(soon(t), func(context.Context) error { return nil }) // the minute before
		require.NoError(t, err)
		all.Go(func() {
			for k := range minutes {
				time.Sleep(time.Until(begin.Add(time.Duration(k)*time.Minute + off*time.Millisecond)))
				_, err := p.Do(soon(t), r.job(t, time.Minute, time.Millisecond))
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	r.judge(t, begin, time.Minute, minutes)
	assert.Len(t, r.counts, minutes)
}

// A run that is late by more than five minutes is made up only if asked, the
// last one only, and not before the first run.
func TestMissed(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []quorate.PeriodOption
		first bool          // a run at 02:30
		late  time.Duration // after 05:30
		ran   bool
	}{
		"late":                {nil, true, 4 * time.Minute, true},
		"too late":            {nil, true, 6 * time.Minute, false},
		"made up":             {[]quorate.PeriodOption{period.WithCatchUp()}, true, 50 * time.Minute, true},
		"nothing was missed":  {[]quorate.PeriodOption{period.WithCatchUp()}, false, 6 * time.Minute, false},
		"the first, and late": {[]quorate.PeriodOption{period.WithCatchUp()}, false, 4 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := nodesAt(t, utc("2026-05-01 02:30"), 3, 1)[0]
				p := period.NewScheduled(q, "report", cron{hour: -1, minute: 30}, c.opts...)
				if c.first {
					ran, err := p.Do(soon(t), func(context.Context) error { return nil })
					require.NoError(t, err)
					assert.True(t, ran)
				}
				time.Sleep(3*time.Hour + c.late)
				for i := range 2 {
					ran, err := p.Do(soon(t), func(ctx context.Context) error {
						assert.Equal(t, utc("2026-05-01 05:30"), period.Start(ctx))
						return nil
					})
					require.NoError(t, err)
					assert.Equal(t, c.ran && i == 0, ran)
				}
			})
		})
	}
}

// A call that was in time waits for nodes, and its run is not late then.
func TestScheduledOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		p := period.NewScheduled(c.Quorum(), "report", cron{hour: -1})
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
		c.Stop(0)
		c.Stop(1)
		time.AfterFunc(20*time.Minute, func() { c.Start(0); c.Start(1) })
		ran, err := p.Do(soon(t), func(context.Context) error { return nil })
		require.NoError(t, err)
		assert.True(t, ran)
	})
}

// A run that failed is repeated until the next time of the schedule, if asked.
func TestScheduledRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := nodesAt(t, utc("2026-05-01 02:29"), 3, 1)[0]
		p := period.NewScheduled(q, "report", cron{hour: 2, minute: 30}, period.WithRetry())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		runs := 0
		for p.Wait(ctx) == nil {
			_, err := p.Do(ctx, func(context.Context) error {
				if runs++; runs <= 30 {
					return context.DeadlineExceeded
				}
				return nil
			})
			assert.Equal(t, runs == 0 || runs > 30, err == nil)
		}
		assert.Equal(t, 31, runs)
	})
}

// A schedule may begin later, and end.
func TestScheduleOfOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		at := time.Now().Add(2 * time.Hour).Truncate(time.Hour).UTC()
		s := oneTime(at.Add(-time.Minute))
		p := period.NewScheduled(c.Quorum(), "report", s, period.WithOffset(time.Minute), period.WithRetry())
		ran, err := p.Do(soon(t), func(context.Context) error { return nil })
		require.NoError(t, err)
		require.False(t, ran, "before its first time")
		q := c.Quorum()
		p = period.NewScheduled(q, "report", s, period.WithOffset(time.Minute))
		require.NoError(t, p.Wait(t.Context()))
		assert.Equal(t, at, time.Now().UTC())
		ran, err = p.Do(soon(t), func(context.Context) error { return nil })
		require.NoError(t, err)
		assert.True(t, ran)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		require.ErrorIs(t, p.Wait(ctx), context.DeadlineExceeded)
	})
}

type oneTime time.Time

func (s oneTime) Next(t time.Time) time.Time {
	if at := time.Time(s); at.After(t) {
		return at
	}
	return time.Time{}
}

func TestScheduleMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 1)
		q := c.Quorum()
		assert.Panics(t, func() { period.NewScheduled(q, "p", nil) })
		assert.Panics(t, func() { period.NewScheduled(q, "p", cron{}, period.WithOffset(-1)) })
		assert.Panics(t, func() { period.New(q, "p", time.Hour, period.WithOffset(time.Hour)) })
		assert.Panics(t, func() { period.New(q, "p", time.Hour, period.WithZone(time.UTC)) })
		assert.Panics(t, func() { period.New(q, "p", time.Hour, period.WithCatchUp()) })
		p := period.NewScheduled(q, "p", cron{day: 30, month: 2})
		_, err := p.Do(t.Context(), func(context.Context) error { return nil })
		require.ErrorIs(t, err, quorate.ErrInvalid)
		require.ErrorContains(t, err, "never fires")
		require.ErrorIs(t, p.Wait(t.Context()), quorate.ErrInvalid)
		_, err = p.Last(t.Context())
		require.ErrorIs(t, err, quorate.ErrInvalid)
	})
}
