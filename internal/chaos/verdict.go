package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/chaos/client"
	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/quorate/quorate/internal/chaos/judge"
	"github.com/quorate/quorate/internal/chaos/nemesis"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/samber/lo"
)

// result is what one run has shown.
type result struct {
	Plan     plan
	Began    time.Time
	began    int64 // of record.Now
	Took     time.Duration
	Redis    string
	Resource record.ResourceStats
	Lists    judge.Lists // of rivals
	pulse    *fleet.Pulse
	Excused  int                // violations of liveness while no quorum of servers answered the harness
	Repairs  int                // repairs of nodes that had lost their data
	Rates    map[string]float64 // holds per second under faults, by kind of work
	nemesis.Summary
	judge.Findings
}

// judge reads what the clients and the resource have written down. It fails
// when that is too little to show that there is nothing.
func (r *result) judge(ctx context.Context, dir string, ps judge.Phases) (err error) {
	p := &r.Plan
	e := judge.Evidence{
		Dir: dir, Phases: ps, Epoch: r.Began.UnixNano() - r.began, Left: r.Violations, Resource: r.Resource, Lists: r.Lists, Losses: r.Losses,
		Work: p.judged(), Clients: p.Clients, Unordered: p.Control == client.ControlRedsync, Whole: p.Control == "",
		TTL: p.TTL, Guard: p.Guard, Bound: p.Bound, Prompt: fleet.Prompt, Check: p.Check,
	}
	if r.Findings, err = e.Judge(ctx); err != nil {
		return err
	}
	r.Violations, r.Excused = r.pulse.Excuse(r.Violations, ps.Ended, client.Patience)
	// First what has a moment, and so a trace.
	slices.SortStableFunc(r.Violations, func(a, b judge.Violation) int {
		return cmp.Compare(lo.Ternary(a.At > 0, 0, 1), lo.Ternary(b.At > 0, 0, 1))
	})
	return r.enough()
}

// errBusy is the error of a run of which a busy machine can be the cause.
var errBusy = errors.New("too little has been done")

// enough fails when too little was done under faults, as what stands still
// breaks no rule, or when the faults were more than the protocol bears.
func (r *result) enough() error {
	if r.Apart > nemesis.Skew/2 {
		return fmt.Errorf("the clocks of a majority of the servers were off by %v, and only %v is tolerated", r.Apart, nemesis.Skew/2)
	}
	held := lo.CountValuesBy(lo.Filter(r.History.Ops, func(o *judge.Operation, _ int) bool {
		return o.Begin > 0 && o.Phase == judge.UnderFaults
	}), func(o *judge.Operation) string { return o.Kind })
	r.Rates = map[string]float64{}
	for _, kind := range r.Plan.Work {
		rate := float64(held[kind]) / r.Plan.For.Seconds()
		if r.Rates[kind] = rate; rate < r.Plan.MinRate {
			return fmt.Errorf("%w: %.1f holds of %s per second, and at least %.1f are needed to show anything", errBusy, rate, kind, r.Plan.MinRate)
		}
	}
	if r.Excused > 0 {
		return fmt.Errorf("%w: for %d findings no quorum of servers answered the harness within %v", errBusy, r.Excused, fleet.Prompt)
	}
	// In less than a minute a rival may get nothing but between losses.
	if r.Plan.Rivals > 0 && r.Rivals.Judged == 0 && r.Plan.For >= time.Minute {
		return fmt.Errorf("%d holds of rivals, of which none can be judged", r.Rivals.Holds)
	}
	// An exchange takes ten seconds at the least, and twice as long when all
	// else fails. A control fails without one.
	if slices.Contains(r.Plan.Tracks, nemesis.MemberTrack) && r.Plan.Control == "" && r.Exchanges.Done == 0 && r.Plan.For >= 2*time.Minute {
		return fmt.Errorf("%d exchanges of nodes have failed, and none has been carried out", r.Exchanges.Failed)
	}
	return nil
}

// asExpected says whether the library has passed, or the control has failed.
func (r *result) asExpected() bool {
	switch r.Plan.Control {
	case "":
		return len(r.Violations) == 0
	case client.ControlUnfenced, client.ControlRedsync:
		return r.harmful() > 0
	case client.ControlRival:
		return slices.ContainsFunc(r.Violations, func(v judge.Violation) bool { return strings.Contains(v.What, judge.BesideRival) })
	case client.ControlNoBoth:
		return len(r.tooMany()) > 0
	default: // a rule of the library is left out: tokens may fall without a violation
		return slices.ContainsFunc(r.Violations, func(v judge.Violation) bool { return v.At > 0 })
	}
}

// harmful counts what would have hurt: lost updates, and more than one holder.
func (r *result) harmful() int { return len(r.Resource.Corrupt) + len(r.tooMany()) }

// tooMany are the holds beyond the capacity.
func (r *result) tooMany() []judge.Violation { return r.Findings.Beyond(r.Plan.judged()) }

// faultCount is how often a kind of fault was done.
type faultCount struct {
	kind       string
	done, skip int
	failed     int // the harness could not carry it out to its end
}

// faultCounts are all kinds of the plan's tracks, those that were never done
// too.
func (r *result) faultCounts() (counts []faultCount) {
	for _, track := range r.Plan.Tracks {
		for _, kind := range nemesis.FaultKinds(track) {
			counts = append(counts, faultCount{kind: kind})
		}
	}
	for _, f := range r.Faults {
		i := slices.IndexFunc(counts, func(c faultCount) bool { return c.kind == f.Kind })
		switch {
		case f.Skipped:
			counts[i].skip++
		case f.Err != "":
			counts[i].failed++
		default:
			counts[i].done++
		}
	}
	return counts
}
