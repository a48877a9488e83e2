package model

// This file owns how a holder is taken back at its ticket, below the fence: see
// lease/takeback.go.
//
// Invariant: afterwards the queue and the votes are as if the claim had been
// there at that ticket all along.

import (
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// takeBack stores claim i at the ticket of r if r asks for that; i is -1 for an
// unknown one. Claims with higher tickets lose their votes, the highest first,
// until there is room. It reports whether it did so. Otherwise nothing has
// changed: the claim does not fit beside the lower ones with votes, or too many
// claims would lose theirs.
func (v *visit) takeBack(i int, t protocol.Terms, owner string, r protocol.Request) bool {
	if !r.Back || r.Ticket == 0 || r.Ticket >= v.fence || i >= 0 && v.claims[i].Ticket <= r.Ticket || v.taken(r.Ticket) {
		return false
	}
	c := Claim{ID: t.ID, Weight: t.Weight, Owner: owner, Notify: t.Notify}
	if i >= 0 {
		c = v.claims[i]
		c.Weight = min(c.Weight, t.Weight)
	}
	if len(v.claims) == 0 {
		if v.capacity = t.Capacity; v.resized() {
			v.capacity = v.limit
		}
	}
	// The place at the higher ticket is given up, so its vote takes no room.
	last, ok := v.makeRoom(i, c.Weight, r.Ticket)
	if !ok {
		return false
	}
	for j := last; j < len(v.claims); j++ {
		if o := &v.claims[j]; o.Voted {
			o.Voted = false
			v.releaseRedlockKey(o.ID)
		}
	}
	if i >= 0 {
		v.releaseRedlockKey(c.ID)
		v.claims = slices.Delete(v.claims, i, i+1)
	}
	c.Ticket, c.Expiry = r.Ticket, v.now+t.TTL.Milliseconds()
	// Votes are a prefix of the queue: below a claim that keeps its vote it has
	// one at once. Else advance gives it.
	c.Voted = slices.ContainsFunc(v.claims, func(o Claim) bool { return o.Voted && o.Ticket > c.Ticket })
	v.keepFence(t)
	v.enqueue(c)
	v.tookBack = v.fence
	return true
}

// makeRoom returns from where on claims have to give their votes up so that a
// claim of the weight fits at a ticket, and whether it does. Claims with votes
// below the ticket keep them, whatever their weight: they are ahead of it.
// Claim i is that claim itself. After a Resize none gives its vote up: a holder
// could not get it back.
func (v *visit) makeRoom(i int, weight uint64, ticket protocol.Ticket) (last int, ok bool) {
	sum, votes := uint64(0), 0
	for j, o := range v.claims {
		if o.Voted {
			votes = j + 1
			if j != i {
				sum += o.Weight
			}
		}
	}
	last = votes
	for left := v.portion(); last > 0 && sum+weight > v.capacity; last-- {
		o := &v.claims[last-1]
		switch {
		case last-1 == i:
			continue
		case o.Ticket < ticket || left == 0 || v.resized():
			return 0, false
		}
		left--
		sum -= o.Weight
	}
	return last, sum+weight <= v.capacity
}
