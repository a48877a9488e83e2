package main

import (
	"fmt"

	"github.com/quorate/quorate/internal/testkit/judge"
	"github.com/samber/lo"
)

// holds are what the judge of the test kit reads: the operations that were
// answered with a hold.
func holds(ops []*operation) []judge.Hold[*operation] {
	return lo.FilterMap(ops, func(o *operation, _ int) (judge.Hold[*operation], bool) {
		return judge.Hold[*operation]{Of: o, From: o.Begin, To: o.valid(), Weight: o.Weight, Token: o.Token, Continued: o.Shrunk}, o.held()
	})
}

// overlaps finds the moments when holds of one name that were valid weighed
// more than its capacity.
func overlaps(ops []*operation, capacity int64) []violation {
	return lo.Map(judge.Overlaps(holds(ops), capacity), func(found judge.Overlap[*operation], _ int) violation {
		all := lo.Map(found.Holds, func(h judge.Hold[*operation], _ int) *operation { return h.Of })
		return violation{At: found.At, What: fmt.Sprintf("%d of %d of %s held at a time", found.Weight, capacity, all[0].Name), Ops: all}
	})
}

// falling finds holds whose token is not above that of every earlier one which
// could not have been held together with it.
func falling(ops []*operation, capacity int64) []violation {
	return lo.Map(judge.Falls(holds(ops), capacity), func(found judge.Fall[*operation], _ int) violation {
		h, o := found.Earlier.Of, found.Later.Of
		return violation{At: o.Begin, What: fmt.Sprintf("token of %s not above an earlier one: %d after %d", o.Name, o.Token, h.Token), Ops: []*operation{h, o}}
	})
}
