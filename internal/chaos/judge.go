package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
)

// judge reads what the clients and the resource have written down. It fails
// when that is too little to show that there is nothing.
func (r *result) judge(ctx context.Context, dir string, ps phases) (err error) {
	p := &r.Plan
	e := evidence{
		Dir: dir, Phases: ps, Epoch: r.Began.UnixNano() - r.began, Left: r.Violations, Resource: r.Resource, Lists: r.Lists, Losses: r.Losses,
		Work: p.judged(), Clients: p.Clients, Unordered: p.Control == controlRedsync, Whole: p.Control == "",
		TTL: p.TTL, Guard: p.Guard, Bound: p.Bound, Prompt: prompt, Check: p.Check,
	}
	if r.findings, err = e.judge(ctx); err != nil {
		return err
	}
	r.Violations, r.Excused = r.pulse.excuse(r.Violations, ps.ended, patience)
	// First what has a moment, and so a trace.
	slices.SortStableFunc(r.Violations, func(a, b violation) int { return cmp.Compare(lo.Ternary(a.At > 0, 0, 1), lo.Ternary(b.At > 0, 0, 1)) })
	return r.enough()
}

// errBusy is the error of a run of which a busy machine can be the cause.
var errBusy = errors.New("too little has been done")

// enough fails when too little was done under faults, as what stands still
// breaks no rule, or when the faults were more than the protocol bears.
func (r *result) enough() error {
	if r.Apart > skew/2 {
		return fmt.Errorf("the clocks of a majority of the servers were off by %v, and only %v is tolerated", r.Apart, skew/2)
	}
	held := lo.CountValuesBy(lo.Filter(r.History.Ops, func(o *operation, _ int) bool {
		return o.Begin > 0 && o.Phase == underFaults
	}), func(o *operation) string { return o.Kind })
	r.Rates = map[string]float64{}
	for _, kind := range r.Plan.Work {
		rate := float64(held[kind]) / r.Plan.For.Seconds()
		if r.Rates[kind] = rate; rate < r.Plan.MinRate {
			return fmt.Errorf("%w: %.1f holds of %s per second, and at least %.1f are needed to show anything", errBusy, rate, kind, r.Plan.MinRate)
		}
	}
	if r.Excused > 0 {
		return fmt.Errorf("%w: for %d findings no quorum of servers answered the harness within %v", errBusy, r.Excused, prompt)
	}
	// In less than a minute a rival may get nothing but between losses.
	if r.Plan.Rivals > 0 && r.Rivals.Judged == 0 && r.Plan.For >= time.Minute {
		return fmt.Errorf("%d holds of rivals, of which none can be judged", r.Rivals.Holds)
	}
	// An exchange takes ten seconds at the least, and twice as long when all
	// else fails. A control fails without one.
	if slices.Contains(r.Plan.Tracks, memberTrack) && r.Plan.Control == "" && r.Exchanges.Done == 0 && r.Plan.For >= 2*time.Minute {
		return fmt.Errorf("%d exchanges of nodes have failed, and none has been carried out", r.Exchanges.Failed)
	}
	return nil
}

// asExpected says whether the library has passed, or the control has failed.
func (r *result) asExpected() bool {
	switch r.Plan.Control {
	case "":
		return len(r.Violations) == 0
	case controlUnfenced, controlRedsync:
		return r.harmful() > 0
	case controlRival:
		return slices.ContainsFunc(r.Violations, func(v violation) bool { return strings.Contains(v.What, besideRival) })
	case controlNoBoth:
		return len(r.tooMany()) > 0
	default: // a rule of the library is left out: tokens may fall without a violation
		return slices.ContainsFunc(r.Violations, func(v violation) bool { return v.At > 0 })
	}
}

// harmful counts what would have hurt: lost updates, and more than one holder.
func (r *result) harmful() int { return len(r.Resource.Corrupt) + len(r.tooMany()) }

// tooMany are the holds beyond the capacity.
func (r *result) tooMany() []violation { return r.findings.beyond(r.Plan.judged()) }

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
		for _, kind := range faultKinds(track) {
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
