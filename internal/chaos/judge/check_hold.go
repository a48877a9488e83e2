package judge

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/testkit/judge"
	"github.com/samber/lo"
)

// holds converts the operations that acquired a hold for the judge of the test
// kit.
func holds(ops []*Operation) []judge.Hold[*Operation] {
	return lo.FilterMap(ops, func(o *Operation, _ int) (judge.Hold[*Operation], bool) {
		return judge.Hold[*Operation]{Of: o, From: o.Begin, To: o.valid(), Weight: o.Weight,
			Token: o.Token, Continued: o.Shrunk}, o.held()
	})
}

// overlaps finds moments when the valid holds of one name together exceeded its
// capacity.
func overlaps(ops []*Operation, capacity int64) []Violation {
	return lo.Map(judge.Overlaps(holds(ops), capacity), func(found judge.Overlap[*Operation],
		_ int) Violation {
		all := lo.Map(found.Holds, func(h judge.Hold[*Operation], _ int) *Operation { return h.Of })
		return Violation{At: found.At, What: fmt.Sprintf("%d of %d of %s held at a time", found.Weight,
			capacity, all[0].Name), Ops: all}
	})
}

// falling finds holds whose token is not higher than the tokens of all earlier
// holds that exclude it.
func falling(ops []*Operation, capacity int64) []Violation {
	return lo.Map(judge.Falls(holds(ops), capacity), func(found judge.Fall[*Operation], _ int) Violation {
		h, o := found.Earlier.Of, found.Later.Of
		return Violation{At: o.Begin, What: fmt.Sprintf("token of %s not above an earlier one: %d after %d",
			o.Name, o.Token, h.Token), Ops: []*Operation{h, o}}
	})
}

// A token contains a ticket in microseconds. Nodes give no ticket that is
// further ahead of their clocks than half the guard time. A claim that waits
// long, or is shared, has an old ticket.
const (
	aheadMore = time.Second // allowance for drifting clocks, and for the time between two readings of a clock
	agedMost  = time.Minute
)

// ticketTime returns the time of the ticket in the operation's token, in terms
// of record.Now.
func (o *Operation) ticketTime(epoch int64) int64 {
	return int64(o.claim())*int64(time.Microsecond) - epoch
}

// astray finds holds whose token is far from the current time, because the
// wrong clock of one node got into it. epoch is the wall-clock time when
// record.Now was 0.
func astray(ops []*Operation, epoch int64, window time.Duration) (found []Violation) {
	for _, o := range ops {
		if !o.held() {
			continue
		}
		ahead := time.Duration(o.ticketTime(epoch) - o.Begin)
		if ahead > window+aheadMore || ahead < -agedMost {
			found = append(found, Violation{At: o.Begin,
				What: fmt.Sprintf("the token of %s is %v ahead of the time", o.Name, ahead), Ops: []*Operation{o}})
		}
	}
	return found
}

// mistaken finds wrong answers to the question who leads: a term although a
// later term had begun before the client asked, or a term that had not begun
// yet, because an earlier one was still going on when the answer arrived.
func mistaken(ops []*Operation, told []Sighting) (found []Violation) {
	for _, s := range told {
		for _, o := range ops {
			switch {
			case !o.held():
			case o.Token > s.Token && o.Begin < s.From:
				found = append(found, Violation{At: s.To, What: fmt.Sprintf(
					"%s asked for the leader from %s to %s, and got term %d, though a later one had begun", s.By,
					record.Seconds(s.From), record.Seconds(s.To), s.Token), Ops: []*Operation{o}})
			case o.Token < s.Token && o.valid() > s.To:
				found = append(found, Violation{At: s.To, What: fmt.Sprintf(
					"%s asked for the leader from %s to %s, and got term %d, though an earlier one was not over", s.By,
					record.Seconds(s.From), record.Seconds(s.To), s.Token), Ops: []*Operation{o}})
			}
		}
	}
	return found
}
