package period

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sparse is 11 with the race detector, which has nothing to find in the loops
// of one goroutine, and makes them ten times slower: see race_test.go. They
// look at one moment in so many then.
var sparse = 1

// times is a schedule of exactly these times, in order.
type times []time.Time

func (s times) Next(t time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(s, t, func(at, t time.Time) int {
		if at.After(t) {
			return 1
		}
		return -1
	})
	if i == len(s) {
		return time.Time{}
	}
	return s[i]
}

// Whatever the times of a schedule are, start and next find the two around a
// moment, and a schedule is asked at most 200 times for them.
func TestAround(t *testing.T) {
	t.Parallel()
	seed := time.Now().UnixNano()
	random := rand.New(rand.NewPCG(uint64(seed), 0)) //nolint:gosec // a test
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 2000 / sparse {
		var all times
		at := base
		for range random.IntN(50) {
			at = at.Add(time.Millisecond * time.Duration(1+random.Int64N(1<<random.IntN(36))))
			all = append(all, at)
		}
		asked := 0
		offset := time.Duration(random.Int64N(3)) * time.Hour
		c := &scheduled{schedule: counted{all, &asked}, offset: offset}
		span := int64(at.Sub(base) + 2*time.Hour)
		for range 20 {
			m := base.Add(time.Duration(random.Int64N(span)) - time.Hour)
			if len(all) > 0 && random.IntN(3) == 0 {
				m = all[random.IntN(len(all))]
			}
			var from, until time.Time
			for _, s := range all {
				if s = s.Add(offset); !s.After(m) {
					from = s
				} else if until.IsZero() {
					until = s
				}
			}
			asked = 0
			require.Equal(t, from, c.start(m), "seed %d: %v of %v", seed, m, all)
			require.Equal(t, until, c.next(m), "seed %d: %v of %v", seed, m, all)
			require.LessOrEqual(t, asked, 200)
		}
	}
}

type counted struct {
	Schedule
	asked *int
}

func (c counted) Next(t time.Time) time.Time { *c.asked++; return c.Schedule.Next(t) }

// A fixed period with an offset starts later by it, also before 1970.
func TestFixed(t *testing.T) {
	t.Parallel()
	f := fixed{24 * time.Hour, 2 * time.Hour}
	day := time.Date(2026, 5, 4, 2, 0, 0, 0, time.UTC)
	assert.Equal(t, day, f.start(day))
	assert.Equal(t, day, f.start(day.Add(24*time.Hour-1)))
	assert.Equal(t, day.Add(24*time.Hour), f.next(day))
	assert.Equal(t, time.Date(1969, 12, 30, 2, 0, 0, 0, time.UTC),
		f.start(time.Date(1969, 12, 31, 1, 0, 0, 0, time.UTC)))
}

// byMinute is a schedule of all minutes for which it returns true.
type byMinute func(w time.Time) bool

func (s byMinute) Next(t time.Time) time.Time {
	t = t.Truncate(time.Minute)
	for range 40 * 24 * 60 {
		if t = t.Add(time.Minute); s(t) {
			return t
		}
	}
	return time.Time{}
}

// The times in zones whose clocks change are compared with those of somebody
// who looks at a clock on the wall each minute: they are the minutes that the
// schedule names; those that the clock skips, at the change; those that it
// shows twice, once, unless it also names a minute before and after.
func TestZones(t *testing.T) {
	t.Parallel()
	at := func(hours, minutes []int) byMinute {
		return func(w time.Time) bool {
			return (hours == nil || slices.Contains(hours, w.Hour())) && slices.Contains(minutes, w.Minute())
		}
	}
	schedules := map[string]byMinute{
		"30 2 * * *": at([]int{2}, []int{30}), "0 2 * * *": at([]int{2}, []int{0}),
		"0,30 2 * * *": at([]int{2}, []int{0, 30}),
		"0 * * * *":    at(nil, []int{0}), "*/10 * * * *": at(nil, []int{0, 10, 20, 30, 40, 50}),
		"45 1 * * *":  at([]int{1}, []int{45}),
		"0 1-3 * * *": at([]int{1, 2, 3}, []int{0}), "0 0 * * *": at([]int{0}, []int{0}),
		"59 23 * * *": at([]int{23}, []int{59}),
		"0 */2 * * *": at([]int{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22}, []int{0}),
		"15 0 * * *":  at([]int{0}, []int{15}),
	}
	for zone, changes := range map[string][]string{
		"Europe/Berlin": {"2026-03-29", "2026-10-25"}, "America/New_York": {"2026-03-08", "2026-11-01"},
		"Australia/Lord_Howe": {"2026-04-05", "2026-10-04"}, "America/Sao_Paulo": {"2018-02-18", "2018-11-04"},
		"Pacific/Apia": {"2011-12-30"}, "Asia/Kathmandu": {"2026-06-01"}, "UTC": {"2026-06-01"},
		"Europe/Dublin": {"2026-10-25"},
	} {
		loc, err := time.LoadLocation(zone)
		require.NoError(t, err)
		for _, day := range changes {
			middle, err := time.Parse(time.DateOnly, day)
			require.NoError(t, err)
			for name, s := range schedules {
				from, to := middle.Add(-50*time.Hour), middle.Add(50*time.Hour)
				z := &zoned{s, loc}
				var got []time.Time
				for n, last := z.Next(from), from; n.Before(to); n, last = z.Next(n), n {
					require.True(t, n.After(last), "%s %s: %v after %v", zone, name, n, last)
					got = append(got, n.UTC())
				}
				want := watch(s, loc, from, to)
				require.Equal(t, want, got, "%s %s %s", zone, day, name)
				for m := from; m.Before(to); m = m.Add(time.Duration(7*sparse) * time.Minute) { // from any moment
					i := slices.IndexFunc(want, func(n time.Time) bool { return n.After(m) })
					if i >= 0 {
						require.Equal(t, want[i], z.Next(m).UTC(), "%s %s after %v", zone, name, m)
					}
				}
			}
		}
	}
}

// watch returns the minutes of a schedule as a clock on the wall shows them.
func watch(s byMinute, loc *time.Location, from, to time.Time) (due []time.Time) {
	shown := func(m time.Time) time.Time {
		const layout = "2006-01-02 15:04"
		w, _ := time.Parse(layout, m.In(loc).Format(layout))
		return w
	}
	named := func(from, to time.Time) bool {
		for ; from.Before(to); from = from.Add(time.Minute) {
			if s(from) {
				return true
			}
		}
		return false
	}
	var both bool
	var until time.Time // what the clock shows twice ends here
	for m := from.Add(time.Minute); m.Before(to); m = m.Add(time.Minute) {
		w, before := shown(m), shown(m.Add(-time.Minute)).Add(time.Minute)
		back := before.Sub(w)
		if back > 0 {
			until = before
			both = named(w.Add(-back), w) && named(w, before) && named(before, before.Add(back))
		}
		if s(w) && (both || !w.Before(until)) || back < 0 && named(before, w) {
			due = append(due, m.UTC())
		}
	}
	return due
}

// What is wrong with a schedule is said at once, with what to do.
func TestCheck(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 5, time.UTC)
	for want, s := range map[string]Schedule{
		"never fires: check its day": times{},
		"must return a later time":   next(func(t time.Time) time.Time { return t }),
		"use period.New": next(func(t time.Time) time.Time {
			return t.Add(time.Hour).Truncate(time.Second)
		}),
		"fires 5ms after": next(func(t time.Time) time.Time {
			return t.Truncate(5 * time.Millisecond).Add(5 * time.Millisecond)
		}),
	} {
		err := (&scheduled{schedule: s}).check(now)
		require.ErrorContains(t, err, want)
	}
	for _, s := range []Schedule{
		times{now.Add(-time.Hour)}, times{now.Add(time.Hour)}, // it has ended, it is to come
		byMinute(func(w time.Time) bool { return w.Minute() == 0 }),
		next(func(t time.Time) time.Time { return t.Truncate(10 * time.Millisecond).Add(10 * time.Millisecond) }),
	} {
		require.NoError(t, (&scheduled{schedule: s, offset: time.Minute}).check(now))
	}
}

type next func(t time.Time) time.Time

func (n next) Next(t time.Time) time.Time { return n(t) }
