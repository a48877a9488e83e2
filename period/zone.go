package period

import "time"

// zoned asks a schedule for the times that clocks on the wall show in a zone.
// The schedule sees them as times in UTC, where no hour is missing or repeated.
//
// Europe/Berlin, 2026-03-29: after 01:59 comes 03:00. A time from 02:00 to
// 02:59 becomes 03:00, the moment at which the clocks skip it. On 2026-10-25
// 02:00 to 02:59 come twice. A time in that hour means the first of the two. A
// schedule that also fires in the hour before and in the hour after has both.
type zoned struct {
	schedule Schedule
	loc      *time.Location
}

func (z *zoned) Next(t time.Time) time.Time {
	w := wall(t.In(z.loc))
	if r := z.repeatedNear(t); r.length > 0 {
		if next := z.within(r, t); !next.IsZero() {
			return next
		}
		if !t.Before(r.again) { // the wall clock shows an hour that is over
			w = r.wall.Add(r.length - 1)
		}
	}
	next := z.schedule.Next(w)
	if next.IsZero() {
		return next
	}
	return z.instant(next)
}

// wall returns what clocks in t's zone show, as a time in UTC.
func wall(t time.Time) time.Time {
	_, ahead := t.Zone()
	return t.Add(time.Duration(ahead) * time.Second).UTC()
}

// instant returns when clocks show w: the first time if they do twice, and the
// moment at which they skip w if they never do.
func (z *zoned) instant(w time.Time) time.Time {
	t := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), w.Nanosecond(), z.loc)
	begin, end := t.ZoneBounds()
	switch shown := wall(t); {
	case shown.After(w):
		return begin
	case shown.Before(w):
		return end
	case begin.IsZero():
		return t
	}
	_, before := begin.Add(-1).Zone()
	if first := w.Add(-time.Duration(before) * time.Second).In(z.loc); first.Before(begin) {
		return first
	}
	return t
}

// repeated is a stretch that clocks on the wall show twice.
type repeated struct {
	wall   time.Time     // what they show at its beginning
	again  time.Time     // when they show it for the second time
	length time.Duration // 0: there is none
}

// repeatedNear returns the stretch that t is in, for the first or the second
// time.
func (z *zoned) repeatedNear(t time.Time) repeated {
	begin, end := t.In(z.loc).ZoneBounds()
	for _, change := range []time.Time{begin, end} {
		if change.IsZero() {
			continue
		}
		_, before := change.Add(-1).Zone()
		_, after := change.Zone()
		back := time.Duration(before-after) * time.Second
		if back > 0 && t.Sub(change).Abs() <= back && t.Before(change.Add(back)) {
			return repeated{wall: wall(change), again: change, length: back}
		}
	}
	return repeated{}
}

// within returns the next time after t at which a schedule that fires in both
// passes of r fires in the second pass, or the zero time.
func (z *zoned) within(r repeated, t time.Time) time.Time {
	fires := func(from time.Time) bool {
		n := z.schedule.Next(from.Add(-1))
		return !n.IsZero() && n.Before(from.Add(r.length))
	}
	if !fires(r.wall.Add(-r.length)) || !fires(r.wall) || !fires(r.wall.Add(r.length)) {
		return time.Time{}
	}
	from := r.wall.Add(-1)
	if t.Before(r.again) {
		if first := z.schedule.Next(wall(t.In(z.loc))); first.Before(r.wall.Add(r.length)) {
			return time.Time{} // it is not over for the first time
		}
	} else {
		from = wall(t.In(z.loc))
	}
	next := z.schedule.Next(from)
	if next.IsZero() || !next.Before(r.wall.Add(r.length)) {
		return time.Time{}
	}
	return r.again.Add(next.Sub(r.wall))
}
