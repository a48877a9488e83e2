package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/quorate/quorate/internal/chaos/record"
)

// ModelStats counts what the linearizability checker has done.
type ModelStats struct {
	Operations, Histories, Unknown int
	Took                           time.Duration
}

// The steps of the models.
type step struct {
	what   string // acquire, release, or a request to the resource
	weight int64
	token  uint64
	access record.Access
}

const (
	doAcquire = "acquire"
	doRelease = "release"
)

// fenced is the state of a mutex and its resource as one object: the owner's
// token, the highest token given, and the state of the resource.
type fenced struct {
	owner, highest uint64
	seen           uint64
	value          int64
}

// fencedMutex is the sequential specification of a mutex that gives rising
// tokens, together with a resource that refuses falling ones.
func fencedMutex(start fenced) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return start },
		Step: func(state, input, _ any) (bool, any) {
			s, in := state.(fenced), input.(step)
			switch in.what {
			case doAcquire:
				ok := s.owner == 0 && in.token > s.highest
				s.owner, s.highest = in.token, in.token
				return ok, s
			case doRelease:
				ok := s.owner == in.token
				s.owner = 0
				return ok, s
			}
			a := in.access
			if !a.OK {
				return a.Token < s.seen, s
			}
			ok := a.Token >= s.seen && a.Token <= s.highest && a.Value == s.value
			s.seen = max(s.seen, a.Token)
			if a.What == record.DoWrite {
				ok = ok && a.Base == s.value
				s.value = a.Base + 1
			}
			return ok, s
		},
	}
}

// weightedSemaphore is the sequential specification of a semaphore, whose state
// is the weights of its holders. It also specifies a reader/writer lock.
func weightedSemaphore(capacity int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, input, _ any) (bool, any) {
			used, in := state.(int64), input.(step)
			if in.what == doAcquire {
				return used+in.weight <= capacity, used + in.weight
			}
			return used >= in.weight, used - in.weight
		},
	}
}

// steps converts operations into steps of the models.
//
// A hold ends when its validity ends. An unanswered release, or an expired
// lease, may take effect later. But the earliest moment leaves the others the
// most room, so no other moment needs to be tried. For the same reason an
// acquisition without an answer is left out, although it may have happened: its
// client never held anything.
func steps(ops []*Operation) (all []porcupine.Operation) {
	for _, o := range ops {
		if o.Begin == 0 {
			continue
		}
		// If a process was stopped between its admission and reading the clock,
		// it was admitted before its validity ended, so no later than this.
		end := o.valid()
		got, from := min(o.Begin, end-1), end
		// The process was stopped while reading the clock. All that is known is
		// that it was admitted.
		if got < o.Call {
			got, from, end = o.Begin, o.Call, o.Begin
		}
		all = append(all,
			porcupine.Operation{Input: step{what: doAcquire, weight: o.Weight, token: o.Token},
				Call: o.Call, Return: got, Metadata: o},
			porcupine.Operation{Input: step{what: doRelease, weight: o.Weight, token: o.Token},
				Call: from, Return: end, Metadata: o})
	}
	return all
}

// accesses converts the requests that reached the resource, each at the moment
// when it did.
func accesses(log []record.Access, name string) (all []porcupine.Operation) {
	for _, a := range log {
		if a.Name == name {
			all = append(all, porcupine.Operation{Input: step{what: a.What, access: a}, Call: a.At,
				Return: a.At})
		}
	}
	return all
}

// split cuts a history at moments when there is no waiter and no holder. A
// history is linearizable if and only if its parts are, each starting in the
// state in which the previous part has left the object. Without the split the
// checker's memory grows with the square of the history's length.
func split(all []porcupine.Operation) (parts [][]porcupine.Operation) {
	slices.SortStableFunc(all, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	held := map[*Operation]bool{}
	from, busy := 0, int64(0)
	for i, o := range all {
		if i > from && o.Call > busy && len(held) == 0 {
			parts = append(parts, all[from:i])
			from = i
		}
		busy = max(busy, o.Return)
		if op, ok := o.Metadata.(*Operation); ok {
			if o.Input.(step).what == doAcquire {
				held[op] = true
			} else {
				delete(held, op)
			}
		}
	}
	if from < len(all) {
		parts = append(parts, all[from:])
	}
	return parts
}

// after returns the state of a mutex that all claims have left, after a part of
// the history.
func (s fenced) after(part []porcupine.Operation) fenced {
	s.owner = 0
	for _, o := range part {
		in := o.Input.(step)
		switch {
		case in.what == doAcquire:
			s.highest = max(s.highest, in.token)
		case in.access.OK:
			s.seen = max(s.seen, in.access.Token)
			if s.value = in.access.Value; in.what == record.DoWrite {
				s.value = in.access.Base + 1
			}
		}
	}
	return s
}

// linear checks one name's history against its model. log, the resource's log,
// is nil if there are no tokens or if nothing checks them.
func linear(ops []*Operation, capacity int64, log []record.Access, limit time.Duration, stats *ModelStats) (
	found []Violation,
) {
	began := time.Now()
	defer func() { stats.Took += time.Since(began) }()
	all := steps(ops)
	if log != nil && len(ops) > 0 {
		all = append(all, accesses(log, ops[0].Name)...)
	}
	var start fenced
	for _, part := range split(all) {
		model := weightedSemaphore(capacity)
		if log != nil {
			model = fencedMutex(start)
			start = start.after(part)
		}
		stats.Histories++
		stats.Operations += len(part)
		switch porcupine.CheckOperationsTimeout(model, part, limit) {
		case porcupine.Unknown:
			stats.Unknown++
		case porcupine.Illegal:
			v := Violation{At: part[0].Call,
				What: fmt.Sprintf("no order of %d steps on %s from %s to %s explains their results",
					len(part), ops[0].Name, record.Seconds(part[0].Call),
					record.Seconds(part[len(part)-1].Return))}
			for _, o := range part {
				if op, ok := o.Metadata.(*Operation); ok && o.Input.(step).what == doAcquire {
					v.Ops = append(v.Ops, op)
				}
			}
			found = append(found, v)
		}
	}
	return found
}

// overwritten returns the violation for a lost update.
func overwritten(l record.LostUpdate, ops map[string]*Operation) Violation {
	v := Violation{At: l.At,
		What: fmt.Sprintf("lost update of %s: %s, token %d, has read %d and overwrites the %d of %s",
			l.Name, l.Op, l.Token, l.Base, l.Value, l.Other)}
	for _, op := range []string{l.Op, l.Other} {
		if o := ops[op]; o != nil {
			v.Ops = append(v.Ops, o)
		}
	}
	return v
}

// Overslept reports whether the writer itself knew that its hold was not valid,
// or no longer. A lock without tokens cannot prevent such a write.
func Overslept(l record.LostUpdate, ops map[string]*Operation) bool {
	o := ops[l.Op]
	return o != nil && l.At > o.Until
}

// torn finds readers that have seen a number change while they held the lock.
func torn(log []record.Access) (found []Violation) {
	seen := map[string]record.Access{}
	for _, a := range log {
		if a.What != record.DoRead || !a.OK || a.Alone {
			continue
		}
		if first, again := seen[a.Op]; again && first.Value != a.Value {
			found = append(found, Violation{At: a.At, What: fmt.Sprintf(
				"%s changed under a reader: %s, token %d, has read %d and then %d", a.Name, a.Op,
				a.Token, first.Value, a.Value)})
		}
		seen[a.Op] = a
	}
	return found
}
