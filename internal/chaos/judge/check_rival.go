package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"
)

// Loss is one loss of a node's data, in times of record.Now.
type Loss struct {
	Node     int
	From, To int64 // 0: not over yet
	Clock    bool  // the node's clock was set
}

// BesideRival ends the text of a violation about two holds that were valid at
// the same time, ours and a rival's.
const BesideRival = "held beside a rival"

// RivalStats counts the holds of redsync clients that ran alongside ours.
type RivalStats struct {
	Holds   int // holds of rivals
	Judged  int // rivals' holds without an earlier data loss that would excuse an overlap
	Excused int // overlaps that a data loss explains
	Outside int // holds that began while the set no longer matched the rival's list
}

func (s RivalStats) String() string {
	return fmt.Sprintf("%d; %d; %d; %d", s.Holds, s.Judged, s.Outside, s.Excused)
}

// Listing is the list of nodes that a rival uses in one of its lives.
type Listing struct {
	Nodes []int
	Until int64 // from then on a set counts whose majorities may miss those of the list; 0 if there is none
}

// Lists has the list of each life of the rivals, by the prefix of the life's
// operations.
type Lists map[string]Listing

func (ls Lists) of(o *Operation) Listing { return ls[o.life()] }

// intrusions finds holds of ours that were valid while a rival's hold was valid
// by redsync's own Until. README and docs/use/from-redsync.md promise that
// there are none unless a node has lost its data, because a rival does not wait
// for a guard time. Two cases remain:
//
//   - Theirs first, then ours. Our oldest vote is at most a ttl old. If there is no loss between it and the
//     rival's success, some node of the rival's majority had our claim behind the rival's key. It has the key
//     still, or has lost it and does not vote for us in the guard time, which is longer than the expiry.
//     A jump of the node's clock ends the key unnoticed, so there must be no jump until ours began.
//   - Ours first, then theirs. Without a loss in our last ttl, some node of the rival's majority had our key.
//
// That node is on the rival's list, so a loss of another node is no excuse.
// During an exchange there is such a node until a set counts alone whose
// majorities may miss those of the list: see fleet/lists.go.
func intrusions(ours, theirs []*Operation, lists Lists, all []Loss, ttl time.Duration, stats *RivalStats) (
	found []Violation,
) {
	ours = heldInOrder(ours)
	for _, r := range heldInOrder(theirs) {
		list := lists.of(r)
		losses := lo.Filter(all, func(l Loss, _ int) bool { return slices.Contains(list.Nodes, l.Node) })
		outside := func(at int64) bool { return list.Until > 0 && at >= list.Until }
		stats.Holds++
		switch {
		case outside(r.Begin):
			stats.Outside++
		case !excused(losses, r.Begin-int64(ttl), r.Begin, r.valid(), ttl):
			stats.Judged++
		}
		for _, o := range ours {
			if o.Begin >= r.valid() {
				break
			}
			if o.valid() <= r.Begin || outside(max(o.Begin, r.Begin)) {
				continue
			}
			since, last, jumps := r.Begin-int64(ttl), r.Begin, r.Begin
			if r.Begin < o.Begin {
				since, jumps = min(r.Call, o.Begin-int64(ttl)), o.Begin
			}
			if excused(losses, since, last, jumps, ttl) {
				stats.Excused++
				continue
			}
			found = append(found, Violation{At: max(o.Begin, r.Begin),
				What: fmt.Sprintf("%s "+BesideRival, o.Name), Ops: []*Operation{r, o}})
		}
	}
	return found
}

func heldInOrder(ops []*Operation) []*Operation {
	held := slices.DeleteFunc(slices.Clone(ops), func(o *Operation) bool { return !o.held() })
	slices.SortFunc(held, func(a, b *Operation) int { return cmp.Compare(a.Begin, b.Begin) })
	return held
}

// excused reports whether a node has lost its data between since and last, or
// its clock was set between since and jumps. The exact time is unknown: it may
// be up to slack after the end of the loss.
func excused(losses []Loss, since, last, jumps int64, slack time.Duration) bool {
	return slices.ContainsFunc(losses, func(l Loss) bool {
		until := last
		if l.Clock {
			until = jumps
		}
		return l.From <= until && (l.To == 0 || l.To+int64(slack) >= since)
	})
}
