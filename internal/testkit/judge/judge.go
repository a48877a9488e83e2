// Package judge reads what participants have written down of their holds, and
// finds what must not be.
//
// The judge does not ask the library. It is given intervals in which a
// participant certainly held a name: from after the lock was granted to before
// it was given back, lost or, at the latest, no longer valid. Whatever a
// participant is interrupted at, the interval is inside the true one. So what
// the judge reports is real, and what it does not report may still be.
//
// All times are of one clock that all participants share.
package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Hold is an interval in which a participant certainly held a name: from From,
// and not at To any more. A Hold whose To is not above its From shows nothing,
// and is ignored.
type Hold[T any] struct {
	Of       T     // what the hold is of; the judge only returns and prints it
	From, To int64 // nanoseconds
	Weight   int64 // of the name's capacity; for a name that one participant holds, 1 of 1
	Token    uint64

	// Continued says that another hold goes on with this one's claim, and has
	// its token: a writer has become a reader.
	Continued bool
}

func (h *Hold[T]) certain() bool { return h.To > h.From }

// Overlap is a moment from which on more was held than there is.
type Overlap[T any] struct {
	At     int64
	Weight int64     // held together
	Holds  []Hold[T] // that were held, in the order of their beginnings
}

func (o Overlap[T]) String() string {
	last := o.Holds[len(o.Holds)-1]
	return fmt.Sprintf("%d held at a time: %v began %v before %v ended", o.Weight, last.Of,
		time.Duration(o.Holds[0].To-o.At), o.Holds[0].Of)
}

// Overlaps finds the moments from which on the holds of one name weighed more
// than its capacity. A hold that ends at the moment at which another begins is
// not in its way.
func Overlaps[T any](holds []Hold[T], capacity int64) (found []Overlap[T]) {
	sweep(holds, func(at, weight int64, begins bool, in map[int]bool) {
		if !begins || weight <= capacity {
			return
		}
		var all []Hold[T]
		for i := range maps.Keys(in) {
			all = append(all, holds[i])
		}
		slices.SortFunc(all, func(a, b Hold[T]) int { return cmp.Compare(a.From, b.From) })
		found = append(found, Overlap[T]{at, weight, all})
	})
	return found
}

// Peak is the most that was held at a time, and when it was for the first time.
func Peak[T any](holds []Hold[T]) (weight, at int64) {
	sweep(holds, func(when, w int64, _ bool, _ map[int]bool) {
		if w > weight {
			weight, at = w, when
		}
	})
	return weight, at
}

// sweep calls edge at each beginning and each end of a hold, in the order of
// time, with what is held from then on.
func sweep[T any](holds []Hold[T], edge func(at, weight int64, begins bool, in map[int]bool)) {
	type event struct {
		at     int64
		begins bool
		i      int
	}
	var all []event
	for i := range holds {
		if holds[i].certain() {
			all = append(all, event{holds[i].From, true, i}, event{holds[i].To, false, i})
		}
	}
	slices.SortStableFunc(all, func(a, b event) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.begins == b.begins:
			return 0
		case b.begins:
			return -1
		}
		return 1
	})
	in := map[int]bool{}
	var weight int64
	for _, e := range all {
		if e.begins {
			in[e.i] = true
			weight += holds[e.i].Weight
		} else {
			delete(in, e.i)
			weight -= holds[e.i].Weight
		}
		edge(e.at, weight, e.begins, in)
	}
}

// Fall is a token that is not above that of an earlier hold.
type Fall[T any] struct{ Earlier, Later Hold[T] }

func (f Fall[T]) String() string {
	return fmt.Sprintf("%v comes after %v, and its token %d is not above %d", f.Later.Of, f.Earlier.Of,
		f.Later.Token, f.Earlier.Token)
}

// Falls finds holds of one name whose token is not above that of every earlier
// one that could not have been held together with it.
func Falls[T any](holds []Hold[T], capacity int64) (found []Fall[T]) {
	holds = slices.DeleteFunc(slices.Clone(holds), func(h Hold[T]) bool { return !h.certain() })
	slices.SortStableFunc(holds, func(a, b Hold[T]) int { return cmp.Compare(a.From, b.From) })
	highest := map[int64]Hold[T]{} // by weight: there are few
	for _, h := range holds {
		for weight, before := range highest {
			same := before.Token == h.Token && !before.Continued
			if weight+h.Weight > capacity && (before.Token > h.Token || same) {
				found = append(found, Fall[T]{before, h})
			}
		}
		if before, ok := highest[h.Weight]; !ok || h.Token > before.Token {
			highest[h.Weight] = h
		}
	}
	return found
}

// Overtakes finds holds of one name that began while its capacity was for
// claims with lower tokens, which were ahead in the queue.
//
// Tokens tell the order in which claims queued. Times alone do not tell in
// which order they were granted, for a process may learn of it late. But a
// claim with a lower token that was still held later on was ahead all the time,
// as a holder or as a waiter: there must have been room for both.
func Overtakes[T any](holds []Hold[T], capacity int64) (found []Hold[T]) {
	holds = slices.DeleteFunc(slices.Clone(holds), func(h Hold[T]) bool { return !h.certain() })
	slices.SortStableFunc(holds, func(a, b Hold[T]) int { return cmp.Compare(a.Token, b.Token) })
	through := make([]int64, len(holds)) // when all holds up to this one had ended
	for i, h := range holds {
		room := capacity - h.Weight
		for j := i - 1; j >= 0 && through[j] > h.From; j-- {
			if holds[j].To > h.From {
				room -= holds[j].Weight
			}
		}
		if room < 0 {
			found = append(found, h)
		}
		through[i] = h.To
		if i > 0 {
			through[i] = max(h.To, through[i-1])
		}
	}
	return found
}

// Used is the share of a capacity that was held between two moments: 1 where
// all of it was, all the time.
func Used[T any](holds []Hold[T], capacity, from, to int64) float64 {
	var held int64
	for _, h := range holds {
		held += h.Weight * max(0, min(h.To, to)-max(h.From, from))
	}
	return float64(held) / float64(capacity*(to-from))
}
