package model

// What a node tells an onlooker about a name: scripts/inspect.lua. Looking
// changes nothing.

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Looked is what a node tells of one name.
type Looked struct {
	Fence    protocol.Ticket
	Queued   int           // all claims, those that are not in Claims too
	Voted    int           // how many of these have a vote
	Capacity uint64        // 0: no claim is queued
	Foreign  time.Duration // time left of another client's redlock key; 0: there is none
	Memory   time.Duration // how far back the node remembers; 0: it may have forgotten a lease
	Claims   []Claim       // the first ones
	Evicted  time.Duration // time left of the lease of the evicted claim; 0: it is not here
}

// lookedAt is how many claims are looked at. The ones behind count as queued,
// whether their leases have ended or not.
const lookedAt = 100

// Look returns what the node tells of the name, with at most most claims. It
// also evicts the claim with the ticket evict, unless that is 0.
func (n *Name) Look(now int64, most int, evict protocol.Ticket) (Looked, []Out) {
	l := Looked{Fence: n.fence}
	if n.node.Recovering(now) == 0 {
		l.Memory = n.node.Age(now)
	}
	for i, c := range n.claims {
		if i < lookedAt && c.Expiry <= now {
			continue
		}
		if l.Queued++; c.Voted {
			l.Voted++
		}
		if i < lookedAt && l.Queued <= most {
			l.Claims = append(l.Claims, c)
		}
		l.Capacity = n.capacity
	}
	ours := slices.ContainsFunc(n.claims, func(c Claim) bool { return c.ID.String() == n.Redlock.plain })
	if n.Redlock.Value(now) != "" && !ours {
		l.Foreign = time.Millisecond // one that does not end
		if n.Redlock.plainEnd != forGood {
			l.Foreign = time.Duration(n.Redlock.plainEnd-now) * time.Millisecond
		}
	}
	var outs []Out
	l.Evicted, outs = n.Evict(now, evict)
	return l, outs
}

// Evict tells the owner of the claim with that ticket that an operator ends its
// hold, if the node votes for the claim. The node stores nothing about that.
// Evict returns what is left of the claim's lease, or 0 if the claim is not
// here.
func (n *Name) Evict(now int64, t protocol.Ticket) (left time.Duration, outs []Out) {
	for _, c := range n.Claims(now) {
		if c.Ticket != t {
			continue
		}
		if left = time.Duration(c.Expiry-now) * time.Millisecond; c.Voted {
			p := protocol.Push{ID: c.ID, Incarnation: n.node.incarnation, Clock: now * 1000, Ticket: t, Evict: true}
			outs = append(outs, c.out(p))
		}
	}
	return left, outs
}
