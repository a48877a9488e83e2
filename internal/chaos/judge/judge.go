package judge

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/samber/lo"
)

// Evidence is everything that is judged, and the limits that apply.
type Evidence struct {
	Dir      string // directory of the clients' logs
	Phases   Phases
	Epoch    int64       // the wall-clock time when record.Now was 0
	Left     []Violation // violations that the harness has found itself
	Resource record.ResourceStats
	Lists    Lists  // of rivals
	Losses   []Loss // of all nodes

	Work       []Work
	Clients    int
	Unordered  bool // there are no tokens and no order: only simultaneous holds are judged
	Whole      bool // the library itself runs, so models, order and waits are judged too
	TTL, Guard time.Duration
	Bound      time.Duration // of a wait without faults
	Prompt     time.Duration // an operation that asked up to this much later may be served first
	Check      time.Duration // time limit for each model
}

// Findings is what the judge has found.
type Findings struct {
	History    *History
	Models     ModelStats
	Once       OnceStats
	Rivals     RivalStats
	Waits      WaitStats
	Violations []Violation
}

// Judge reads the logs and returns the findings.
func (e *Evidence) Judge(ctx context.Context) (f Findings, err error) {
	f.Violations = e.Left
	if f.History, err = loadHistory(e.Dir, e.Phases); err != nil {
		return f, err
	}
	h := f.History
	if h.Late > 0 {
		f.Violations = slices.DeleteFunc(f.Violations, func(v Violation) bool { return v.Key })
	}
	for _, l := range e.Resource.Corrupt {
		f.add(overwritten(l, h.ByOp))
	}
	f.add(torn(e.Resource.Log)...)
	for _, t := range h.Troubles {
		f.add(Violation{What: "client " + t})
	}
	ours, theirs := h.ours(), h.by(func(o *Operation) bool { return o.Begin > 0 && o.Kind == record.Rival })
	told := lo.GroupBy(h.Told, func(s Sighting) string { return s.Name })
	for _, w := range e.Work {
		if w.Kind == "once" {
			for _, one := range rounds(h) {
				f.add(one.check(h.ByOp, e.Check, &f.Once, &f.Models)...)
				f.add(astray(one.runs, e.Epoch, e.Guard/2)...)
			}
			continue
		}
		for _, name := range w.Names {
			e.name(&f, w.Capacity, ours[name], theirs[name], told[name])
			if !e.Unordered && ctx.Err() != nil {
				return f, ctx.Err()
			}
		}
	}
	if e.Whole {
		f.add(starved(e.Work, e.Clients, e.Bound, h, &f.Waits)...)
	}
	return f, nil
}

// name judges the operations of one name.
func (e *Evidence) name(f *Findings, capacity int64, ops, theirs []*Operation, told []Sighting) {
	f.add(overlaps(ops, capacity)...)
	if e.Unordered {
		return
	}
	f.add(falling(ops, capacity)...)
	f.add(astray(ops, e.Epoch, e.Guard/2)...)
	f.add(intrusions(ops, theirs, e.Lists, e.Losses, e.TTL, &f.Rivals)...)
	f.add(mistaken(ops, told)...)
	if !e.Whole {
		return
	}
	var log []record.Access
	if capacity == 1 {
		log = e.Resource.Log
	}
	f.add(linear(ops, capacity, log, e.Check, &f.Models)...)
	f.add(overtaken(ops, capacity, e.Epoch, e.TTL, e.Prompt, &f.Waits)...)
}

func (f *Findings) add(found ...Violation) { f.Violations = append(f.Violations, found...) }

// Beyond returns the violations of the capacity by our own holds.
func (f *Findings) Beyond(work []Work) (found []Violation) {
	byName := f.History.ours()
	for _, w := range work {
		for _, name := range w.Names {
			found = append(found, overlaps(byName[name], w.Capacity)...)
		}
	}
	return found
}
