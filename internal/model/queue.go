package model

import (
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// place puts a claim into the queue and raises the fence to its ticket.
func (v *visit) place(c Claim) {
	i := 0
	for i < len(v.claims) && v.claims[i].Ticket <= c.Ticket {
		i++
	}
	v.claims = slices.Insert(v.claims, i, c)
	if c.Ticket > v.fence {
		v.fence, v.fenceOf = c.Ticket, c.ID
	}
	v.forgetFence()
}

// forgetFence is what a node without MonotoneFence does after every change.
func (v *visit) forgetFence() {
	if !v.off(MonotoneFence) {
		return
	}
	v.fence, v.fenceOf = 0, protocol.ID{}
	if k := len(v.claims); k > 0 {
		v.fence, v.fenceOf = v.claims[k-1].Ticket, v.claims[k-1].ID
	}
}

func (v *visit) next(id protocol.ID) protocol.Ticket {
	if v.off(Residue) {
		return v.fence + 1
	}
	return id.Next(v.fence)
}

func (v *visit) taken(t protocol.Ticket) bool {
	return slices.ContainsFunc(v.claims, func(c Claim) bool { return c.Ticket == t })
}

func (v *visit) find(id protocol.ID) int {
	return slices.IndexFunc(v.claims, func(c Claim) bool { return c.ID == id })
}

func (v *visit) unvoted() int {
	k := 0
	for _, c := range v.claims {
		if !c.Voted {
			k++
		}
	}
	return k
}

func (n *Node) off(r Rules) bool { return n.Off&r != 0 }
