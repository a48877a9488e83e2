package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/chaos/record"
)

// WaitStats is how long locks were waited for.
type WaitStats struct {
	Calm   time.Duration // the longest wait when all was well
	Faulty time.Duration // the longest that ended well while there were faults
	GaveUp int           // waits that the client's patience ended, while there were faults
	// Claims that had not been settled within a ttl when all was well, and lost
	// their place.
	Restarted int
}

// starved finds, in the liveness phase, waits beyond the bound, refusals, and
// clients that did not get everything.
func starved(work []Work, clients int, limit time.Duration, h *History, stats *WaitStats) (found []Violation) {
	got := map[string]int{}
	for _, o := range h.Ops {
		end := max(o.Begin, o.Failed)
		waited := time.Duration(end - o.Call)
		client, _, _ := strings.Cut(o.Op, ".")
		switch {
		case end == 0 || o.Kind == record.Rival: // its client was killed
		case o.Phase == UnderFaults && o.Begin > 0:
			stats.Faulty = max(stats.Faulty, waited)
		case o.Phase == UnderFaults && strings.Contains(o.Err, "deadline exceeded"):
			stats.GaveUp++
		case o.Phase != AllWell:
		case waited > limit:
			found = append(found, Violation{At: o.Call, What: fmt.Sprintf("waited %v when all was well", waited), Live: true, Ops: []*Operation{o}})
		case o.Begin > 0:
			stats.Calm = max(stats.Calm, waited)
			got[client+" "+o.Name]++
		default:
			found = append(found, Violation{At: o.Call, What: "refused when all was well: " + o.Err, Live: true, Ops: []*Operation{o}})
		}
	}
	for c := range clients {
		for _, w := range work {
			for _, name := range w.Names {
				if got[fmt.Sprintf("c%d %s", c, name)] == 0 {
					found = append(found, Violation{What: fmt.Sprintf("client %d did not get %s when all was well", c, name), Live: true})
				}
			}
		}
	}
	return found
}

// overtaken finds, when all was well, operations that asked more than the bound
// later than another that they exclude, and got the lock before it. Less than
// that can be the way from the call to the nodes on a busy machine.
//
// Goroutines of one process share a claim: readers hold it together, writers
// pass it on. Such a one has asked when the first of them did. A goroutine that
// cannot share the claim waits in its process: its own claim begins when that
// hold ends. A claim that has not been settled within a ttl, on a machine that
// stood still, begins again, with a new place.
func overtaken(all []*Operation, capacity, epoch int64, ttl, bound time.Duration, stats *WaitStats) (found []Violation) {
	asked, ops := map[uint64]int64{}, all
	for _, o := range ops {
		if at, ok := asked[o.claim()]; !ok || o.Call < at {
			asked[o.claim()] = o.Call
		}
	}
	ops = slices.DeleteFunc(slices.Clone(ops), func(o *Operation) bool { return o.Phase != AllWell || o.Begin == 0 || o.After != "" })
	for i, first := range ops {
		if first.ticketTime(epoch)-asked[first.claim()] >= int64(ttl*9/10) {
			stats.Restarted++
			continue
		}
		for _, o := range ops[i+1:] {
			if o.Call > first.Begin {
				break
			}
			if o.Begin < first.Begin && first.Weight+o.Weight > capacity && asked[o.claim()] > first.inLine(all)+int64(bound) {
				found = append(found, Violation{At: o.Begin, What: "overtaken when all was well", Live: true, Ops: []*Operation{first, o}})
			}
		}
	}
	return found
}

// inLine is when the operation's claim can have begun: at its call, or when the
// last hold of another claim ended that its process had of the name meanwhile.
func (o *Operation) inLine(ops []*Operation) int64 {
	at := o.Call
	for _, before := range ops {
		if before.life() == o.life() && before.claim() != o.claim() && before.End < o.Begin {
			at = max(at, before.End)
		}
	}
	return at
}
