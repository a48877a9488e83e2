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

// result is the result of one run.
type result struct {
	Plan     plan
	Began    time.Time
	began    int64 // of record.Now
	Took     time.Duration
	Redis    string
	Resource record.ResourceStats
	Lists    judge.Lists // of rivals
	pulse    *fleet.Pulse
	Excused  int                // liveness violations while no quorum of servers answered the harness
	Repairs  int                // repairs of nodes that had lost their data
	Rates    map[string]float64 // holds per second under faults, by kind of work
	nemesis.Summary
	judge.Findings
}

// judge reads the logs of the clients and of the resource. It fails if they
// show too little to be conclusive.
func (r *result) judge(ctx context.Context, dir string, ps judge.Phases) (err error) {
	p := &r.Plan
	e := judge.Evidence{
		Dir: dir, Phases: ps, Epoch: r.Began.UnixNano() - r.began, Left: r.Violations,
		Resource: r.Resource, Lists: r.Lists, Losses: r.Losses,
		Work: p.judged(), Clients: p.Clients, Unordered: p.Control == client.ControlRedsync,
		Whole: p.Control == "",
		TTL:   p.TTL, Guard: p.Guard, Bound: p.Bound, Prompt: fleet.Prompt, Check: p.Check,
	}
	if r.Findings, err = e.Judge(ctx); err != nil {
		return err
	}
	r.Violations, r.Excused = r.pulse.Excuse(r.Violations, ps.Ended, client.Patience)
	// Violations at a known moment first, because they have a trace.
	slices.SortStableFunc(r.Violations, func(a, b judge.Violation) int {
		return cmp.Compare(lo.Ternary(a.At > 0, 0, 1), lo.Ternary(b.At > 0, 0, 1))
	})
	return r.enough()
}

// errBusy is the error of a run that failed possibly because the machine was
// busy.
var errBusy = errors.New("too little has been done")

// enough fails if too little was done under faults, because an idle system
// breaks no rule, or if there were more faults than the protocol tolerates.
func (r *result) enough() error {
	if r.Apart > nemesis.Skew/2 {
		return fmt.Errorf("the clocks of a majority of the servers were off by %v, and only %v is tolerated",
			r.Apart, nemesis.Skew/2)
	}
	held := lo.CountValuesBy(lo.Filter(r.History.Ops, func(o *judge.Operation, _ int) bool {
		return o.Begin > 0 && o.Phase == judge.UnderFaults
	}), func(o *judge.Operation) string { return o.Kind })
	r.Rates = map[string]float64{}
	for _, kind := range r.Plan.Work {
		rate := float64(held[kind]) / r.Plan.For.Seconds()
		if r.Rates[kind] = rate; rate < r.Plan.MinRate {
			return fmt.Errorf("%w: %.1f holds of %s per second, and at least %.1f are needed to show anything",
				errBusy, rate, kind, r.Plan.MinRate)
		}
	}
	if r.Excused > 0 {
		return fmt.Errorf("%w: for %d findings no quorum of servers answered the harness within %v",
			errBusy, r.Excused, fleet.Prompt)
	}
	// In less than a minute a rival may only get locks near a data loss.
	if r.Plan.Rivals > 0 && r.Rivals.Judged == 0 && r.Plan.For >= time.Minute {
		return fmt.Errorf("%d holds of rivals, of which none can be judged", r.Rivals.Holds)
	}
	// An exchange takes at least ten seconds, and twice as long during other
	// faults. A control fails even without an exchange.
	if slices.Contains(r.Plan.Tracks, nemesis.MemberTrack) && r.Plan.Control == "" &&
		r.Exchanges.Done == 0 && r.Plan.For >= 2*time.Minute {
		return fmt.Errorf("%d exchanges of nodes have failed, and none has been carried out", r.Exchanges.Failed)
	}
	return nil
}

// asExpected reports whether the library has passed, or the control has failed.
func (r *result) asExpected() bool {
	switch r.Plan.Control {
	case "":
		return len(r.Violations) == 0
	case client.ControlUnfenced, client.ControlRedsync:
		return r.harmful() > 0
	case client.ControlRival:
		return slices.ContainsFunc(r.Violations,
			func(v judge.Violation) bool { return strings.Contains(v.What, judge.BesideRival) })
	case client.ControlNoBoth:
		return len(r.tooMany()) > 0
	default: // a rule of the library is left out: tokens may fall without a violation
		return slices.ContainsFunc(r.Violations, func(v judge.Violation) bool { return v.At > 0 })
	}
}

// harmful counts real harm: lost updates, and moments with too many holders.
func (r *result) harmful() int { return len(r.Resource.Corrupt) + len(r.tooMany()) }

// tooMany returns the violations of the capacity.
func (r *result) tooMany() []judge.Violation { return r.Findings.Beyond(r.Plan.judged()) }

// faultCount is how often a kind of fault was injected.
type faultCount struct {
	kind       string
	done, skip int
	failed     int // the harness could not complete the fault
}

// faultCounts returns the counts of all kinds of the plan's tracks, including
// kinds that never occurred.
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
