package model

// This file bounds the work of one request: a node serves no other client while
// a script runs. What exceeds the portion stays noted in the queue
// (droppedUpTo, notifiedUpTo, over), and the next request goes on with it.
//
// Invariant: a claim whose lease has ended gets no vote, dropped or not.

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// portion is how many claims a request may deal with.
func (n *Node) portion() int { return cmp.Or(n.Portion, Portion) }

// purge drops the claims whose lease has ended, in the order of tickets and a
// portion at a time. One that is not dropped yet counts as if its lease were
// longer, which is safe at any time, but gets no vote.
//
// One that would outlast the retention was given before the clock was
// set back, as every lease is shorter than that. How much of it is left is not
// known any more, so it gets as much as it may have at most.
func (v *visit) purge(t protocol.Terms) {
	last := v.now + t.TTL.Milliseconds() + v.retention
	if v.droppedUpTo == 0 {
		if v.firstExpiry > v.now && v.lastExpiry <= last {
			return
		}
		v.firstExpiry, v.lastExpiry = forGood, 0
	}
	first := slices.IndexFunc(v.claims, func(c Claim) bool { return c.Ticket > v.droppedUpTo })
	if first < 0 {
		first = len(v.claims)
	}
	end := min(first+v.portion(), len(v.claims))
	v.droppedUpTo = 0
	if end < len(v.claims) && !v.off(Resume) {
		v.droppedUpTo = v.claims[end-1].Ticket
	}
	// Invariant: the claims before first have been looked at by this sweep, and
	// are kept as they are. Their leases may have ended since: firstExpiry then
	// begins the next sweep.
	live := slices.Clone(v.claims[:first])
	for _, c := range v.claims[first:end] {
		if c.Expiry > v.now {
			c.Expiry = min(c.Expiry, last)
			v.lasts(c.Expiry)
			live = append(live, c)
		} else if v.hasRedlockKey() {
			v.releaseRedlockKey(c.ID)
		}
	}
	v.claims = append(live, v.claims[end:]...)
	v.forgetFence()
}

// lasts notes when a claim's lease ends.
func (n *Node) lasts(expiry int64) {
	n.firstExpiry, n.lastExpiry = min(n.firstExpiry, expiry), max(n.lastExpiry, expiry)
}

// advance gives the vote to one claim after the other, in ticket order, for as
// long as they fit and a portion at most. Votes are never taken back here: the
// claims below a claim only ever leave.
func (v *visit) advance() {
	var sum, digest uint64
	v.over = false
	for i := range v.claims {
		c := &v.claims[i]
		if !c.Voted {
			if sum+c.Weight > v.capacity || v.hasRedlockKey() && !v.mayTakeRedlockKey(c) {
				return
			}
			if v.votes == 0 || c.Expiry <= v.now {
				v.over = true
				return
			}
			if v.hasRedlockKey() {
				v.takeRedlockKey(c)
			}
			v.votes--
			c.Voted = true
			if c.ID != v.self {
				p := protocol.Push{
					ID: c.ID, Incarnation: v.incarnation, Ticket: c.Ticket, Vote: true,
					Waiters: v.unvoted() > 0, Sum: sum, Digest: digest,
				}
				if v.resized() {
					p.Limit, p.LimitAt = v.limit, v.limitAt
				}
				v.outs = append(v.outs, Out{c.Owner, p})
			}
		}
		sum, digest = sum+c.Weight, (digest+c.ID.Digest())%protocol.DigestMod
	}
}

// resume pushes to holders that a claim has begun to wait. If this request has
// left work over, it asks one client for another request, so that the work goes
// on soon.
func (v *visit) resume() {
	waits := v.unvoted() > 0
	switch {
	case !waits:
		v.notifiedUpTo = 0
	case v.notifying || v.notifiedUpTo > 0:
		v.notifyHolders()
	}
	left := v.over || v.droppedUpTo > 0 || v.notifiedUpTo > 0 || v.off(Enough)
	if !waits || !left || v.off(Ask) {
		return
	}
	// The one that sent this request lives; if its claim has left, the first
	// one that waits. The scripts look for one that listens, among those that
	// wait.
	i := v.find(v.self)
	if i < 0 {
		i = slices.IndexFunc(v.claims, func(c Claim) bool { return !c.Voted })
	}
	c := &v.claims[i]
	v.outs = append(v.outs, Out{c.Owner, protocol.Push{ID: c.ID, Incarnation: v.incarnation, Ticket: c.Ticket, Ask: true}})
}

// notifyHolders goes through the holders in the order of tickets, and notes
// where it stops, so each holder hears once of the first waiter. It pushes to a
// portion of the holders that a claim waits.
func (v *visit) notifyHolders() {
	from, pushed := v.notifiedUpTo, 0
	v.notifiedUpTo = 0
	for _, c := range v.claims {
		if !c.Voted || c.Ticket <= from {
			continue
		}
		if pushed == v.portion() {
			return
		}
		if pushed++; c.Notify {
			v.outs = append(v.outs, Out{c.Owner, protocol.Push{ID: c.ID, Incarnation: v.incarnation, Ticket: c.Ticket, Waiters: true}})
		}
		v.notifiedUpTo = c.Ticket
	}
	v.notifiedUpTo = 0
}

// listable bounds what one answer holds. A claim that gets no list gets totals
// instead, which suffice where there is room. It reports whether few enough
// claims have votes from the ticket from on to list them.
func (v *visit) listable(c *Claim, from protocol.Ticket) bool {
	n := 0
	for _, o := range v.claims {
		if o.Voted && o.Ticket >= min(from, c.Ticket) {
			n++
		}
	}
	return n <= 8*v.portion()
}
