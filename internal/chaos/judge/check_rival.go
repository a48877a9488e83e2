package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"
)

// Loss is one time that a node lost its data, in times of record.Now.
type Loss struct {
	Node     int
	From, To int64 // 0: not over yet
	Clock    bool  // the node's clock was set
}

// BesideRival ends what a violation says of a hold that was valid at the same
// time.
const BesideRival = "held beside a rival"

// RivalStats is what redsync clients have had alongside ours.
type RivalStats struct {
	Holds   int // of theirs
	Judged  int // of those, with no loss of memory before them that would excuse a hold of ours beside
	Excused int // overlaps that a loss of memory explains
	Outside int // holds that began when a set counted that the rival's list says nothing of
}

func (s RivalStats) String() string {
	return fmt.Sprintf("%d; %d; %d; %d", s.Holds, s.Judged, s.Outside, s.Excused)
}

// Listing is the list of nodes that a rival has in one of its lives.
type Listing struct {
	Nodes []int
	Until int64 // a set counts since then whose majorities may miss those of the list; 0 for none
}

// Lists are those of each life of the rivals, by the prefix of the names of its
// operations.
type Lists map[string]Listing

func (ls Lists) of(o *Operation) Listing { return ls[o.life()] }

// intrusions finds holds of ours that were valid while a rival's was, by its
// own Until. README and docs/use/from-redsync.md promise that there is none, except
// where a node has lost its data: a rival waits for no guard time. That leaves:
//
//   - Theirs first, then ours: without a loss between our oldest vote, at most a ttl old, and the
//     rival's success, some node of its majority had our claim behind the rival's key, and has the key still,
//     or has lost it and does not vote for us for the guard time, which is longer than the expiry.
//     A clock that jumps ends the key without the node's noticing, so that must not have been until ours began.
//   - Ours first, then theirs: without a loss within our last ttl, some node of the rival's majority had our key.
//
// That node is of the rival's list, so no other node's loss is an excuse. While
// nodes are exchanged there is such a node until a set counts alone whose
// majorities may miss those of the list: see fleet/lists.go.
func intrusions(ours, theirs []*Operation, lists Lists, all []Loss, ttl time.Duration, stats *RivalStats) (found []Violation) {
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
			found = append(found, Violation{At: max(o.Begin, r.Begin), What: fmt.Sprintf("%s "+BesideRival, o.Name), Ops: []*Operation{r, o}})
		}
	}
	return found
}

func heldInOrder(ops []*Operation) []*Operation {
	held := slices.DeleteFunc(slices.Clone(ops), func(o *Operation) bool { return !o.held() })
	slices.SortFunc(held, func(a, b *Operation) int { return cmp.Compare(a.Begin, b.Begin) })
	return held
}

// excused says whether a node has lost its data between since and last, or its
// clock was set between since and jumps. When exactly it did is not known: it
// may have been as much as slack after its end.
func excused(losses []Loss, since, last, jumps int64, slack time.Duration) bool {
	return slices.ContainsFunc(losses, func(l Loss) bool {
		until := last
		if l.Clock {
			until = jumps
		}
		return l.From <= until && (l.To == 0 || l.To+int64(slack) >= since)
	})
}
