package judge

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/testkit/judge"
	"github.com/samber/lo"
)

// holds are what the judge of the test kit reads: the operations that were
// answered with a hold.
func holds(ops []*Operation) []judge.Hold[*Operation] {
	return lo.FilterMap(ops, func(o *Operation, _ int) (judge.Hold[*Operation], bool) {
		return judge.Hold[*Operation]{Of: o, From: o.Begin, To: o.valid(), Weight: o.Weight, Token: o.Token, Continued: o.Shrunk}, o.held()
	})
}

// overlaps finds the moments when holds of one name that were valid weighed
// more than its capacity.
func overlaps(ops []*Operation, capacity int64) []Violation {
	return lo.Map(judge.Overlaps(holds(ops), capacity), func(found judge.Overlap[*Operation], _ int) Violation {
		all := lo.Map(found.Holds, func(h judge.Hold[*Operation], _ int) *Operation { return h.Of })
		return Violation{At: found.At, What: fmt.Sprintf("%d of %d of %s held at a time", found.Weight, capacity, all[0].Name), Ops: all}
	})
}

// falling finds holds whose token is not above that of every earlier one which
// could not have been held together with it.
func falling(ops []*Operation, capacity int64) []Violation {
	return lo.Map(judge.Falls(holds(ops), capacity), func(found judge.Fall[*Operation], _ int) Violation {
		h, o := found.Earlier.Of, found.Later.Of
		return Violation{At: o.Begin, What: fmt.Sprintf("token of %s not above an earlier one: %d after %d", o.Name, o.Token, h.Token), Ops: []*Operation{h, o}}
	})
}

// The ticket of a token is in microseconds. Nodes give none that is further
// ahead of their clocks than half of the guard time. A claim that waits for
// long, or is shared, has an old one.
const (
	aheadMore = time.Second // clocks that drift, and the time between two looks at a clock
	agedMost  = time.Minute
)

// ticketTime is the time, as of record.Now, that the ticket of the operation's
// token shows.
func (o *Operation) ticketTime(epoch int64) int64 {
	return int64(o.claim())*int64(time.Microsecond) - epoch
}

// astray finds holds whose token is far from the time: the wrong clock of one
// node is in it. epoch is the wall clock's time when now was 0.
func astray(ops []*Operation, epoch int64, window time.Duration) (found []Violation) {
	for _, o := range ops {
		if !o.held() {
			continue
		}
		ahead := time.Duration(o.ticketTime(epoch) - o.Begin)
		if ahead > window+aheadMore || ahead < -agedMost {
			found = append(found, Violation{At: o.Begin, What: fmt.Sprintf("the token of %s is %v ahead of the time", o.Name, ahead), Ops: []*Operation{o}})
		}
	}
	return found
}

// mistaken finds wrong answers to the question for the leader: a term when a
// later one had begun before the client asked, and one that had not begun
// yet, as an earlier one was still going on when they had the answer.
func mistaken(ops []*Operation, told []Sighting) (found []Violation) {
	for _, s := range told {
		for _, o := range ops {
			switch {
			case !o.held():
			case o.Token > s.Token && o.Begin < s.From:
				found = append(found, Violation{At: s.To, What: fmt.Sprintf(
					"%s asked for the leader from %s to %s, and got term %d, though a later one had begun", s.By, record.Seconds(s.From), record.Seconds(s.To), s.Token), Ops: []*Operation{o}})
			case o.Token < s.Token && o.valid() > s.To:
				found = append(found, Violation{At: s.To, What: fmt.Sprintf(
					"%s asked for the leader from %s to %s, and got term %d, though an earlier one was not over", s.By, record.Seconds(s.From), record.Seconds(s.To), s.Token), Ops: []*Operation{o}})
			}
		}
	}
	return found
}
