// Package period runs a job at most once per period across all processes, no
// matter what their clocks show.
//
//	p := period.New(q, "report", time.Hour)
//	ran, err := p.Do(ctx, report) // called by a scheduler, or in a loop with Wait
//
// Periods follow the nodes' clocks. They start at multiples of their length
// since 1970-01-01 00:00 UTC, so a 24 h period starts at midnight UTC. With
// [NewScheduled], they start at the times of a schedule, such as a cron
// expression. The start of a run is recorded on a majority of the nodes of a
// [quorate.Quorum] before the run begins.
//
// All types in this package are safe for concurrent use.
package period

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/setup"
)

// A Period is a job that runs at most once per period. It must be created with
// [New] or [NewScheduled] and must not be copied. Goroutines that share it
// behave like separate processes.
//
// No period has two runs. This does not depend on clocks or leases: the period
// is recorded before the run begins, and recorded periods only increase. But
// because a process can sleep through its lease, a run may still be in progress
// when the run of a later period begins. So fence its writes with the token of
// [Lease].
//
// If no process calls [Period.Do] during a period, that period is skipped. If a
// run lasts into later periods, no other run starts until it ends. A run that
// fails, or whose process dies, is repeated only if you set [WithRetry].
//
// A run starts within its period, give or take the difference between the
// nodes' clocks; see [quorate.WithSkew]. Do not use the same name for another
// primitive. The nodes keep a record of the latest run of every name, so use a
// fixed name rather than a new one every day.
type Period struct {
	_      core.NoCopy
	q      *core.Quorum
	spec   *core.Spec
	reg    *core.Register
	cal    calendar
	retry  bool
	onTime bool         // a run that is late is skipped
	catch  bool         // unless one is recorded before it
	err    error        // of the name or the schedule; every call that would ask the nodes tells it
	waited atomic.Int64 // the period that Wait has returned for last, in Unix microseconds; 0: none
}

// own is an option that this package alone understands.
type own struct {
	quorate.PeriodOption // nil: it makes the type an option of New, and has no other use
	set                  func(*choices)
}

// choices is what the options of this package set.
type choices struct {
	retry, catchUp bool
	offset         time.Duration
	zone           *time.Location // nil: not given
}

// Apply leaves the settings of other primitives unchanged; see New.
func (own) Apply(*setup.Settings) {}

// WithRetry lets a later call of [Period.Do] in the same period run the
// function again if it returned an error or its process died. By default a
// period has at most one run, whatever its outcome.
func WithRetry() quorate.PeriodOption { return own{set: func(c *choices) { c.retry = true }} }

// WithOffset makes each period start d later: with d = 2 h, a 24 h period
// starts at 02:00 UTC. With [New], d must be shorter than the period. d must be
// a whole number of milliseconds. The default is 0.
func WithOffset(d time.Duration) quorate.PeriodOption {
	return own{set: func(c *choices) { c.offset = d }}
}

// WithZone sets the time zone of a schedule. It is for [NewScheduled]; the
// default is UTC. WithZone panics if loc is nil. The schedule works in wall-clock times and must not have a
// time zone of its own.
//
// When the clocks go forward, a time that they skip means the moment of the
// change. When they go back, a time that occurs twice means the first
// occurrence, unless the schedule also fires in the hour before and in the hour
// after; then it means both. So a daily job runs once every day, and an hourly
// job runs once every hour.
//
// All processes need the same zone with the same rules, so keep the time zone
// data on all machines up to date, or import time/tzdata.
func WithZone(loc *time.Location) quorate.PeriodOption {
	if loc == nil {
		panic("quorate: period.WithZone: the location is nil; check the error of time.LoadLocation")
	}
	return own{set: func(c *choices) { c.zone = loc }}
}

// WithCatchUp runs a job late if it missed its scheduled time and the next
// scheduled time has not come yet. It is for [NewScheduled]. If several runs
// were missed, only the most recent one is made up. Nothing counts as missed
// before the job's first run. By default, a run is skipped if [Period.Do] was not called within
// five minutes of its scheduled time.
func WithCatchUp() quorate.PeriodOption { return own{set: func(c *choices) { c.catchUp = true }} }

// latest is how late a call may come for a run of a schedule. Timers of
// systemd are up to a minute late, and a restart of all replicas takes minutes.
const latest = 5 * time.Minute

// A period that is shorter than a few round trips would be skipped most of the
// time. They are counted from 1970 on, so one that is too long never begins.
const shortest, longest = 10 * time.Millisecond, 50 * 365 * 24 * time.Hour

// New returns the job with the given name. All values with the same name share
// the job, across all processes, and should have the same period and options.
//
// Options: [WithRetry], [WithOffset], [quorate.WithTTL],
// [quorate.WithNodeTimeout], [quorate.WithMaxHold], [quorate.WithoutRenewal]
// and [quorate.WithWarning]. The last five default to the settings of q. New
// panics if an option is invalid or nil, or if every is less than 10 ms, more
// than 50 years, or not a whole number of milliseconds. If the name is invalid
// (empty, longer than 1024 bytes, or with braces), every call returns
// [quorate.ErrInvalid].
func New(q *quorate.Quorum, name string, every time.Duration, opts ...quorate.PeriodOption) *Period {
	if every < shortest || every > longest || every%time.Millisecond != 0 {
		panic(fmt.Sprintf("quorate: period.New: every %v: must be a whole number of milliseconds from %v to "+
			"fifty years", every, shortest))
	}
	p, c := create(q, "period.New", name, opts)
	switch {
	case c.offset >= every:
		panic(fmt.Sprintf("quorate: period.New: WithOffset(%v): choose less than the period, %v", c.offset, every))
	case c.zone != nil || c.catchUp:
		panic("quorate: period.New: WithZone and WithCatchUp are for period.NewScheduled: a run of New " +
			"may begin at any time of its period")
	}
	p.cal = fixed{every, c.offset}
	return p
}

// A Schedule determines when a job is due. The schedules of
// github.com/robfig/cron/v3 implement it, but @every does not work.
type Schedule interface {
	// Next returns the first time after t, or the zero time if there is none. The
	// result must depend only on t, so that all processes agree. For each
	// [Period], Next is called by one goroutine at a time.
	Next(t time.Time) time.Time
}

// NewScheduled is like [New], but for a job that is due at the times of a
// schedule:
//
//	daily, err := cron.ParseStandard("0 2 * * *")
//	…
//	p := period.NewScheduled(q, "report", daily, period.WithZone(berlin))
//
// A period lasts from one scheduled time to the next, by the nodes' clocks. Its
// run is recorded under the scheduled time, so all processes agree on which run
// it is. [Period.Do] starts a run only if it was called at most five minutes
// after the scheduled time, unless you set [WithCatchUp]. Times are rounded up
// to milliseconds.
//
// NewScheduled takes two more options: [WithZone] and [WithCatchUp]. It panics
// if an option is invalid or nil, or if s is nil. Every call returns
// [quorate.ErrInvalid] if the name is invalid, or if the schedule never fires,
// fires twice within 10 ms, or counts from the time at which it is asked.
func NewScheduled(q *quorate.Quorum, name string, s Schedule, opts ...quorate.PeriodOption) *Period {
	if s == nil {
		panic("quorate: period.NewScheduled: the schedule is nil")
	}
	p, c := create(q, "period.NewScheduled", name, opts)
	if c.zone != nil {
		s = &zoned{s, c.zone}
	}
	cal := &scheduled{schedule: s, offset: c.offset}
	p.cal, p.onTime, p.catch = cal, true, c.catchUp
	if p.err == nil {
		p.err = cal.check(time.Now().UTC())
	}
	return p
}

// create returns the job without its calendar.
func create(q *quorate.Quorum, by, name string, opts []quorate.PeriodOption) (*Period, choices) {
	cq := core.CoreOf(q).For(name)
	set := core.Override(cq, by, opts)
	var c choices
	for _, o := range opts {
		if o, ok := o.(own); ok {
			o.set(&c)
		}
	}
	if c.offset < 0 || c.offset > longest || c.offset%time.Millisecond != 0 {
		panic(fmt.Sprintf("quorate: %s: WithOffset(%v): choose whole milliseconds, at least 0 and at most "+
			"fifty years", by, c.offset))
	}
	p := &Period{q: cq, retry: c.retry}
	p.spec, p.err = cq.NewSpec(core.Spec{Name: name, Kind: "period", Weight: 1, Capacity: 1, Set: set})
	if p.err != nil {
		p.spec = &core.Spec{Name: name}
		return p, c
	}
	p.reg = cq.Register(p.spec)
	return p, c
}

// usable panics for the zero value, and returns what is wrong with the name.
func (p *Period) usable() error {
	if p == nil || p.q == nil {
		panic("quorate: the zero period.Period has no quorum; use period.New")
	}
	return p.err
}

// now returns the start of this period, or the zero time before the first one.
// A period for which Wait has returned has begun (see begun): otherwise the Do
// that follows would belong to the previous period, and this one might have no
// run.
func (p *Period) now() time.Time {
	now := p.q.NodesTime()
	if waited := begun(p.waited.Load(), now, p.q.Skew()); waited.After(now) {
		return waited.UTC()
	}
	return p.cal.start(now)
}

// begun returns the period that Wait has returned for last, if it has begun by
// the nodes' time now. A new reading of a node's clock may set that time
// back a little; the period has begun nevertheless. If it is set back by more
// than the skew, the clocks were ahead, and the period has not begun.
func begun(waited int64, now time.Time, skew time.Duration) time.Time {
	start := time.UnixMicro(waited)
	if start.Sub(now) > skew {
		return time.UnixMicro(0)
	}
	return start
}

// Wait waits until a new period has started. It returns once per period on each
// value; the first call returns immediately. With [WithRetry], it also returns
// after a tenth of a period or a minute, whichever is less, so that a failed
// run is repeated. This loop runs f in one process of the fleet per period:
//
//	for p.Wait(ctx) == nil {
//		if _, err := p.Do(ctx, f); err != nil {
//			log.Print(err)
//		}
//	}
//
// Wait sends no requests: once a majority of the nodes has answered, this
// process knows what their clocks show. When ctx is done, Wait returns an error
// that matches ctx's error. It can also return [quorate.ErrClosed] or
// [quorate.ErrInvalid].
func (p *Period) Wait(ctx context.Context) error {
	if err := p.usable(); err != nil {
		return core.WrapError("wait", p.spec.Name, err)
	}
	again := time.Now().Add(p.again())
	for {
		if err := p.ended(ctx); err != nil {
			return core.WrapError("wait", p.spec.Name, err)
		}
		pause, begun := p.pause(again)
		if begun { // also if ctx has just ended: no later call gets this period
			return nil
		}
		p.sleep(ctx, pause)
	}
}

// again is how long Wait waits for a retry.
func (p *Period) again() time.Duration {
	now := p.q.NodesTime()
	start, next := p.cal.start(now), p.cal.next(now)
	if start.IsZero() || next.IsZero() {
		return time.Minute
	}
	return min(next.Sub(start)/10, time.Minute)
}

// sleep waits for d, or until ctx or the Quorum ends.
func (p *Period) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.q.Over:
	case <-ctx.Done():
	}
}

// ended is why Wait waits for no further period.
func (p *Period) ended(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return &fault.Failure{Err: fault.ContextError(ctx)}
	case <-p.q.Over:
		return &fault.Failure{Err: fault.ErrClosed}
	default:
		return nil
	}
}

// pause reports whether a period has begun for which Wait has not returned, or
// how long to wait for that. Of goroutines that share the value one gets each
// period.
func (p *Period) pause(again time.Time) (pause time.Duration, done bool) {
	waited, now := p.waited.Load(), p.q.NodesTime()
	if now.Before(epoch) {
		return p.spec.Set.NodeTimeout, false
	}
	start, last := p.cal.start(now), begun(waited, now, p.q.Skew())
	switch {
	case start.After(last) && p.waited.CompareAndSwap(waited, start.UnixMicro()):
		return 0, true
	case p.retry && !time.Now().Before(again):
		return 0, true
	}
	from := now
	if last.After(now) { // a clock was set back a little
		from = last
	}
	pause = longestSleep
	if next := p.cal.next(from); !next.IsZero() {
		pause = min(pause, next.Sub(now))
	}
	if p.retry {
		pause = min(pause, time.Until(again))
	}
	return pause, false
}

// longestSleep is how long Wait relies on its timer: that stands still while
// the machine is suspended, and the nodes' clocks may be set.
const longestSleep = time.Minute

// epoch is before what any node's clock shows. What the nodes' time is before
// a node has answered is near 1970.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
