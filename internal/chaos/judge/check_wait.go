package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/chaos/record"
)

// WaitStats is how long clients waited for locks.
type WaitStats struct {
	Calm   time.Duration // the longest wait without faults
	Faulty time.Duration // the longest successful wait during faults
	GaveUp int           // waits that clients gave up during faults
	// Claims that lost their place without faults, because they were not
	// settled within a ttl.
	Restarted int
}

// starved finds, in the liveness phase, waits that exceed the bound, refusals,
// and clients that did not lock everything.
func starved(work []Work, clients int, limit time.Duration, h *History, stats *WaitStats) (
	found []Violation,
) {
	got := map[string]int{}
	for _, o := range h.Ops {
		end := max(o.Begin, o.Failed)
		waited := time.Duration(end - o.Call)
		client, _, _ := strings.Cut(o.Op, ".")
		switch {
		case end == 0 || o.Kind == record.Rival: // no answer because its client was killed
		case o.Phase == UnderFaults && o.Begin > 0:
			stats.Faulty = max(stats.Faulty, waited)
		case o.Phase == UnderFaults && strings.Contains(o.Err, "deadline exceeded"):
			stats.GaveUp++
		case o.Phase != AllWell:
		case waited > limit:
			found = append(found, Violation{At: o.Call, What: fmt.Sprintf("waited %v when all was well",
				waited), Live: true, Ops: []*Operation{o}})
		case o.Begin > 0:
			stats.Calm = max(stats.Calm, waited)
			got[client+" "+o.Name]++
		default:
			found = append(found, Violation{At: o.Call, What: "refused when all was well: " + o.Err,
				Live: true, Ops: []*Operation{o}})
		}
	}
	for c := range clients {
		for _, w := range work {
			for _, name := range w.Names {
				if got[fmt.Sprintf("c%d %s", c, name)] == 0 {
					found = append(found, Violation{What: fmt.Sprintf("client %d did not get %s when all was well", c, name),
						Live: true})
				}
			}
		}
	}
	return found
}

// overtaken finds operations, in the phase without faults, that asked more than
// bound later than another one that excludes them, and still got the lock
// first. On a busy machine the way from the call to the nodes can take up to
// that long.
//
// Goroutines of one process share a claim: readers hold it together, writers
// pass it on. Such a claim counts from the call of the first of them. A
// goroutine that cannot share the claim waits in its process, and its own claim
// begins when that hold ends. A claim that is not settled within a ttl, because
// the machine stood still, starts again with a new place.
func overtaken(all []*Operation, capacity, epoch int64, ttl, bound time.Duration, stats *WaitStats) (
	found []Violation,
) {
	asked, ops := map[uint64]int64{}, all
	for _, o := range ops {
		if at, ok := asked[o.claim()]; !ok || o.Call < at {
			asked[o.claim()] = o.Call
		}
	}
	ops = slices.DeleteFunc(slices.Clone(ops), func(o *Operation) bool {
		return o.Phase != AllWell ||
			o.Begin == 0 || o.After != ""
	})
	for i, first := range ops {
		if first.ticketTime(epoch)-asked[first.claim()] >= int64(ttl*9/10) {
			stats.Restarted++
			continue
		}
		for _, o := range ops[i+1:] {
			if o.Call > first.Begin {
				break
			}
			if o.Begin < first.Begin && first.Weight+o.Weight > capacity &&
				asked[o.claim()] > first.inLine(all)+int64(bound) {
				found = append(found, Violation{At: o.Begin, What: "overtaken when all was well",
					Live: true, Ops: []*Operation{first, o}})
			}
		}
	}
	return found
}

// inLine returns the earliest time when the operation's claim can have begun:
// its call, or the end of the last hold that its process meanwhile had of the
// name under another claim.
func (o *Operation) inLine(ops []*Operation) int64 {
	at := o.Call
	for _, before := range ops {
		if before.life() == o.life() && before.claim() != o.claim() && before.End < o.Begin {
			at = max(at, before.End)
		}
	}
	return at
}
