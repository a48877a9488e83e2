package judge

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/once"
)

// OnceStats counts the work that was done once, or more often.
type OnceStats struct {
	Rounds    int // rounds that a client has asked for
	Done      int // rounds for which a value was returned
	Runs      int // runs of the function
	Completed int // runs that returned without an error
	Repeated  int // runs after the first of their round: no client had learned that the first was recorded
	Told      int // answers of Status
}

func (s OnceStats) String() string {
	return fmt.Sprintf("%d rounds, %d of them done; %d runs, of which %d completed, %d of them after another "+
		"of their round that no client knew to be recorded; %d answers of "+
		"Status", s.Rounds, s.Done, s.Runs, s.Completed, s.Repeated, s.Told)
}

// round is everything that is known about one round.
type round struct {
	name string
	asks []*Operation
	runs []*Operation
	told []Sighting
}

// rounds sorts the history into rounds.
func rounds(h *History) []*round {
	byName := map[string]*round{}
	var all []*round
	of := func(name string) *round {
		r := byName[name]
		if r == nil {
			r = &round{name: name}
			byName[name] = r
			all = append(all, r)
		}
		return r
	}
	for _, o := range h.Ops {
		switch {
		case o.Round != "":
			of(o.Round).asks = append(of(o.Round).asks, o)
		case o.Kind == record.Runs:
			of(o.Name).runs = append(of(o.Name).runs, o)
		}
	}
	for _, s := range h.Told {
		if r := byName[s.Name]; r != nil {
			r.told = append(r.told, s)
		}
	}
	return all
}

// check finds violations in a round.
func (r *round) check(ops map[string]*Operation, limit time.Duration, once *OnceStats, models *ModelStats) (
	found []Violation,
) {
	found = append(overlaps(r.runs, 1), falling(r.runs, 1)...)
	var first *Operation // the first operation to return that the work is done
	for _, o := range r.asks {
		if o.Begin > 0 && (first == nil || o.Begin < first.Begin) {
			first = o
		}
	}
	completed := 0
	for _, o := range r.runs {
		if o.Done > 0 {
			completed++
			found = append(found, r.untold(o, ops[o.After])...)
		}
		// A superseded run may still go on, but a run with a valid claim must
		// not.
		if first != nil && o.Op != first.Value && o.held() && o.valid() > first.Begin {
			found = append(found, Violation{At: first.Begin,
				What: fmt.Sprintf("%s is run though it is done", r.name), Ops: []*Operation{first, o}})
		}
	}
	once.Rounds++
	once.Runs += len(r.runs)
	once.Completed += completed
	once.Repeated += max(0, completed-1)
	once.Told += len(r.told)
	if first == nil {
		return found
	}
	once.Done++
	for _, o := range r.asks {
		if o.Begin > 0 && o.Value != first.Value {
			found = append(found, Violation{At: o.Begin, What: fmt.Sprintf("%s: %s got %q and %s got %q",
				r.name, first.Op, first.Value, o.Op, o.Value), Ops: []*Operation{first, o}})
		}
	}
	return append(found, r.linear(ops[first.Value], limit, models)...)
}

// untold checks a run whose function has returned without an error: its caller
// must get the value, or an error that it was not recorded. A caller that was
// killed gets nothing.
func (r *round) untold(run, by *Operation) []Violation {
	var wrong string
	switch {
	case by.Begin > 0 && by.Value != run.Op:
		wrong = fmt.Sprintf("its caller got the value of %q", by.Value)
	case by.Failed > 0 && !strings.Contains(by.Err, once.ErrNotRecorded.Error()):
		wrong = "its caller got: " + by.Err
	default:
		return nil
	}
	return []Violation{{At: run.Done, What: fmt.Sprintf("%s has been done by %s, but %s", r.name,
		run.Op, wrong), Ops: []*Operation{run, by}}}
}

// decree is a step of a write-once register: the register gets its value, or is
// seen to have it; 0 means no value yet.
type decree struct {
	write bool
	token uint64
}

// writeOnce is the sequential specification of a write-once register.
func writeOnce() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return uint64(0) },
		Step: func(state, input, _ any) (bool, any) {
			now, in := state.(uint64), input.(decree)
			if in.write {
				return now == 0, in.token
			}
			return now == in.token, now
		},
	}
}

// linear checks the round against the model: no client learns that the work is
// done before a run has done it, and no later call gets another value. Runs
// whose value no client got are left out, because they may never have been
// recorded.
func (r *round) linear(run *Operation, limit time.Duration, stats *ModelStats) []Violation {
	if run == nil || run.Done == 0 {
		return []Violation{{What: fmt.Sprintf("%s has a value that no run has returned", r.name), Ops: r.asks}}
	}
	all := []porcupine.Operation{{Input: decree{true, run.Token}, Call: run.Done, Return: math.MaxInt64}}
	for _, o := range r.asks {
		if o.Begin > 0 {
			all = append(all, porcupine.Operation{Input: decree{token: run.Token}, Call: o.Call,
				Return: o.Begin})
		}
	}
	for _, s := range r.told {
		all = append(all, porcupine.Operation{Input: decree{token: s.Token}, Call: s.From, Return: s.To})
	}
	began := time.Now()
	defer func() { stats.Took += time.Since(began) }()
	stats.Histories++
	stats.Operations += len(all)
	switch porcupine.CheckOperationsTimeout(writeOnce(), all, limit) {
	case porcupine.Unknown:
		stats.Unknown++
	case porcupine.Illegal:
		v := Violation{At: run.Done, What: fmt.Sprintf("no order of %d answers about %s explains them",
			len(all), r.name), Ops: append([]*Operation{run}, r.asks...)}
		for _, s := range r.told {
			v.What += fmt.Sprintf("; %s got %q from %s to %s", s.By, s.Words,
				record.Seconds(s.From), record.Seconds(s.To))
		}
		return []Violation{v}
	}
	return nil
}
