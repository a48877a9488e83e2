package main

import (
	"context"
	"slices"
	"time"

	"github.com/samber/lo"
)

// violation is something that must not be.
type violation struct {
	At   int64 // of now; 0 where there is no one moment
	What string
	Ops  []*operation
	Live bool // it says that something came late, or not at all
	Key  bool // a key that is left: not a fault where a client has told that its last word did not arrive
}

// evidence is all that is judged, and by what measure.
type evidence struct {
	Dir      string // of the logs of the clients
	Phases   phases
	Epoch    int64       // the wall clock's time when now was 0
	Left     []violation // that the harness has seen itself
	Resource resourceStats
	Lists    lists        // of rivals
	Losses   []memoryLoss // of all nodes

	Work       []judgedWork
	Clients    int
	Unordered  bool // there are no tokens and no order: only holds at a time are judged
	Whole      bool // the library itself: models, order and waits are judged, too
	TTL, Guard time.Duration
	Bound      time.Duration // of a wait when all is well
	Prompt     time.Duration // what asked that much later may be served before
	Check      time.Duration // time limit for each model
}

// judgedWork is one kind of what clients do.
type judgedWork struct {
	Kind     string
	Names    []string
	Capacity int64 // of each: holds that are valid together never weigh more
}

// findings are what the judge has found.
type findings struct {
	History    *history
	Models     modelStats
	Once       onceStats
	Rivals     rivalStats
	Waits      waitStats
	Violations []violation
}

// judge reads what the clients and the resource have written down.
func (e *evidence) judge(ctx context.Context) (f findings, err error) {
	f.Violations = e.Left
	if f.History, err = loadHistory(e.Dir, e.Phases); err != nil {
		return f, err
	}
	h := f.History
	if h.Late > 0 {
		f.Violations = slices.DeleteFunc(f.Violations, func(v violation) bool { return v.Key })
	}
	for _, l := range e.Resource.Corrupt {
		f.add(overwritten(l, h.ByOp))
	}
	f.add(torn(e.Resource.Log)...)
	for _, t := range h.Troubles {
		f.add(violation{What: "client " + t})
	}
	ours, theirs := h.ours(), h.by(func(o *operation) bool { return o.Begin > 0 && o.Kind == rival })
	told := lo.GroupBy(h.Told, func(s sighting) string { return s.Name })
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

// name judges what was done with one name.
func (e *evidence) name(f *findings, capacity int64, ops, theirs []*operation, told []sighting) {
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
	var log []access
	if capacity == 1 {
		log = e.Resource.Log
	}
	f.add(linear(ops, capacity, log, e.Check, &f.Models)...)
	f.add(overtaken(ops, capacity, e.Epoch, e.TTL, e.Prompt, &f.Waits)...)
}

func (f *findings) add(found ...violation) { f.Violations = append(f.Violations, found...) }

// beyond are the holds of ours that were beyond the capacity.
func (f *findings) beyond(work []judgedWork) (found []violation) {
	byName := f.History.ours()
	for _, w := range work {
		for _, name := range w.Names {
			found = append(found, overlaps(byName[name], w.Capacity)...)
		}
	}
	return found
}
