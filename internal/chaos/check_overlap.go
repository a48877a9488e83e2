package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// overlaps finds the moments when holds of one name that were valid weighed
// more than its capacity.
func overlaps(ops []*operation, capacity int64) (found []violation) {
	type edge struct {
		at     int64
		begins bool
		op     *operation
	}
	var edges []edge
	for _, o := range ops {
		if o.held() {
			edges = append(edges, edge{o.Begin, true, o}, edge{o.valid(), false, o})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if a.at == b.at && a.begins != b.begins { // who ends at the moment when another begins is not in its way
			if b.begins {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.at, b.at)
	})
	in := map[*operation]bool{}
	var weight int64
	for _, e := range edges {
		if !e.begins {
			delete(in, e.op)
			weight -= e.op.Weight
			continue
		}
		in[e.op] = true
		if weight += e.op.Weight; weight > capacity {
			all := slices.SortedFunc(maps.Keys(in), func(a, b *operation) int { return cmp.Compare(a.Begin, b.Begin) })
			found = append(found, violation{
				At: e.at, What: fmt.Sprintf("%d of %d of %s held at a time", weight, capacity, e.op.Name), Ops: all,
			})
		}
	}
	return found
}

// falling finds holds whose token is not above that of every earlier one which
// could not have been held together with it.
func falling(ops []*operation, capacity int64) (found []violation) {
	held := slices.Clone(ops)
	held = slices.DeleteFunc(held, func(o *operation) bool { return !o.held() })
	slices.SortFunc(held, func(a, b *operation) int { return cmp.Compare(a.Begin, b.Begin) })
	highest := map[int64]*operation{} // by weight: there are few
	for _, o := range held {
		for w, h := range highest {
			// A writer that has become a reader is one claim with one token, which
			// readers of its process join.
			if w+o.Weight > capacity && (h.Token > o.Token || h.Token == o.Token && !h.Shrunk) {
				found = append(found, violation{
					At: o.Begin, What: fmt.Sprintf("token of %s not above an earlier one: %d after %d", o.Name, o.Token, h.Token), Ops: []*operation{h, o},
				})
			}
		}
		if h := highest[o.Weight]; h == nil || o.Token > h.Token {
			highest[o.Weight] = o
		}
	}
	return found
}
