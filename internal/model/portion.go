package model

// Building an answer: what it reports about a claim, its vote, and the claims
// below it. The work of one request is limited, because a node serves no other
// client while a script runs. The queue records how far a request got
// (droppedUpTo, notifiedUpTo, over), and the next request continues from there.
//
// Invariant: a claim whose lease has ended gets no vote, dropped or not.
//
// Invariant: an answer reports all of the lower claims or more, never fewer. A
// client that counts claims from it may refuse unnecessarily, but never admits
// one too many.

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// turn is the handling of one request of a claim. It changes the name n in place.
type turn struct {
	node *Node
	n    *Name
	now  int64
	outs []Out
	self protocol.ID // the claim of the request: it learns its vote from the answer

	counting  bool // the request is a semaphore's
	votes     int  // how many may still be given
	over      bool // votes are left over for the next request
	notifying bool // holders are to hear that a claim waits
}

// purge drops the claims whose lease has ended, in the order of tickets and one
// portion at a time. A claim that has not been dropped yet counts as if its
// lease were longer, which is always safe, but gets no vote.
//
// A patient request drops none. A node that hung or was cut off finds that all
// leases have ended. If the first request to arrive dropped the holder, the
// holder could not come back at its ticket, because a waiter has the fence.
//
// One that would outlast the retention was given before the clock was
// set back, as every lease is shorter than that. How much of it is left is not
// known any more, so it gets as much as it may have at most.
func (v *turn) purge(t protocol.Terms, patient bool) {
	last := v.now + t.TTL.Milliseconds() + v.node.retention
	if v.n.droppedUpTo == 0 {
		if v.n.lastExpiry <= last && (v.n.firstExpiry > v.now || patient) {
			return
		}
		v.n.firstExpiry, v.n.lastExpiry = forGood, 0
	}
	first := slices.IndexFunc(v.n.claims, func(c Claim) bool { return c.Ticket > v.n.droppedUpTo })
	if first < 0 {
		first = len(v.n.claims)
	}
	end := min(first+v.node.portion(), len(v.n.claims))
	v.n.droppedUpTo = 0
	if end < len(v.n.claims) && !v.node.off(Resume) {
		v.n.droppedUpTo = v.n.claims[end-1].Ticket
	}
	// Invariant: the claims before first have been looked at by this sweep, and
	// are kept as they are. Their leases may have ended since: firstExpiry then
	// begins the next sweep.
	live := slices.Clone(v.n.claims[:first])
	for _, c := range v.n.claims[first:end] {
		if c.Expiry > v.now {
			c.Expiry = min(c.Expiry, last)
			v.n.lasts(c.Expiry)
			live = append(live, c)
		} else if v.hasRedlockKey() {
			v.n.Redlock.release(c.ID)
		}
	}
	v.n.claims = append(live, v.n.claims[end:]...)
	v.forgetFence()
}

// advance gives votes to claims in ticket order, as long as they fit and for at
// most one portion. One whose lease has ended is dropped instead. Votes are
// never taken back here: the claims below a claim only ever leave.
func (v *turn) advance() {
	var sum, digest uint64
	v.over = false
	for i := 0; i < len(v.n.claims); i++ {
		c := &v.n.claims[i]
		if !c.Voted {
			if sum+c.Weight > v.n.capacity {
				return
			}
			if v.votes == 0 {
				v.over = true
				return
			}
			if c.Expiry <= v.now {
				v.votes--
				if v.hasRedlockKey() {
					v.n.Redlock.release(c.ID)
				}
				v.n.claims = slices.Delete(v.n.claims, i, i+1)
				i--
				continue
			}
			if v.hasRedlockKey() && !v.n.Redlock.mayTake(v.now, c) {
				return
			}
			if v.hasRedlockKey() {
				v.n.Redlock.take(v.now, c)
			}
			v.votes--
			c.Voted = true
			if c.ID != v.self {
				p := protocol.Push{Vote: true, Waiters: v.n.unvoted() > 0, Sum: sum, Digest: digest}
				if v.resized() {
					p.Limit, p.LimitAt = v.n.limit, v.n.limitAt
				}
				v.push(c, p)
			}
		}
		sum, digest = sum+c.Weight, (digest+c.ID.Digest())%protocol.DigestMod
	}
}

// push sends p to the owner of claim c.
func (v *turn) push(c *Claim, p protocol.Push) {
	p.ID, p.Incarnation, p.Ticket = c.ID, v.node.incarnation, c.Ticket
	v.outs = append(v.outs, c.out(p))
}

// resume pushes to holders that a claim has begun to wait. If this request has
// left work over, it asks one client for another request, so that the work goes
// on soon.
func (v *turn) resume() {
	waits := v.n.unvoted() > 0
	switch {
	case !waits:
		v.n.notifiedUpTo = 0
	case v.notifying || v.n.notifiedUpTo > 0:
		v.notifyHolders()
	}
	left := v.over || v.n.droppedUpTo > 0 || v.n.notifiedUpTo > 0 || v.node.off(Enough)
	if !waits || !left || v.node.off(Ask) {
		return
	}
	// The one that sent this request lives; if its claim has left, the first
	// one that waits. The scripts look for one that listens, among those that
	// wait.
	i := v.n.find(v.self)
	if i < 0 {
		i = slices.IndexFunc(v.n.claims, func(c Claim) bool { return !c.Voted })
	}
	c := &v.n.claims[i]
	v.push(c, protocol.Push{Ask: true})
}

// notifyHolders goes through the holders in the order of tickets, and notes
// where it stops, so each holder hears once of the first waiter. It pushes to a
// portion of the holders that a claim waits.
func (v *turn) notifyHolders() {
	from, pushed := v.n.notifiedUpTo, 0
	v.n.notifiedUpTo = 0
	for _, c := range v.n.claims {
		if !c.Voted || c.Ticket <= from {
			continue
		}
		if pushed == v.node.portion() {
			return
		}
		if pushed++; c.Notify {
			v.push(&c, protocol.Push{Waiters: true})
		}
		v.n.notifiedUpTo = c.Ticket
	}
	v.n.notifiedUpTo = 0
}

// listable bounds what one answer holds. A claim that gets no list gets totals
// instead, which suffice where there is room. It reports whether few enough
// claims have votes from the ticket from on to list them.
func (v *turn) listable(c *Claim, from protocol.Ticket) bool {
	n := 0
	for _, o := range v.n.claims {
		if o.Voted && o.Ticket >= min(from, c.Ticket) {
			n++
		}
	}
	return n <= 8*v.node.portion()
}

// waitHintDepth is up to how many waiters ahead are looked at to guess when to
// ask again. Behind more of them a claim asks when the first lease may have
// ended, and a little later the further back it is.
const waitHintDepth = 8

// answer describes the claim i and its view: the claims with votes below it. A
// list holds those from the ticket from on, and totals stand for those below
// from.
func (v *turn) answer(i int, list bool, from protocol.Ticket, ttl time.Duration) protocol.Answer {
	c := &v.n.claims[i]
	asked := list && c.Voted
	list = asked && v.listable(c, from)
	a := protocol.Answer{Status: protocol.OK, Incarnation: v.node.incarnation, Ticket: c.Ticket, Vote: c.Voted}
	if v.resized() {
		a.Limit, a.LimitAt = v.n.limit, v.n.limitAt
	}
	for j, o := range v.n.claims {
		a.Waiters = a.Waiters || (j != i && !o.Voted)
	}
	// The totals of the voted claims tell what lies below the last of them, and
	// below no other without a walk. Where the list is too long for that they
	// tell more: what lies above as well.
	last := c.Voted && (i+1 == len(v.n.claims) || !v.n.claims[i+1].Voted)
	if a.HasTotals, a.Listed = last || list, list; a.HasTotals {
		for _, o := range v.n.claims[:i] {
			a.Sum, a.Digest = a.Sum+o.Weight, (a.Digest+o.ID.Digest())%protocol.DigestMod
			switch {
			case list && o.Ticket >= from:
				a.Lower = append(a.Lower, protocol.Lower{ID: o.ID, Weight: o.Weight})
			case list:
				a.BaseSum, a.BaseDigest = a.BaseSum+o.Weight, (a.BaseDigest+o.ID.Digest())%protocol.DigestMod
			}
		}
	}
	if asked {
		v.all(&a, i)
	}
	if !c.Voted {
		a.Rank = i
		a.Wait, a.Foreign = v.wait(i, ttl)
		a.Barred = i > 0 && v.hasRedlockKey() && !v.n.claims[0].Voted
	}
	return a
}

// all adds the totals of all claims with votes but claim i to an answer to a
// request for a list. Where there is no list they stand for the lower claims.
// Without them two nodes, of which one has too long a list, never tell of the
// same set, and the claim waits though there is room.
func (v *turn) all(a *protocol.Answer, i int) {
	var sum, digest uint64
	for j, o := range v.n.claims {
		if o.Voted && j != i {
			sum, digest = sum+o.Weight, (digest+o.ID.Digest())%protocol.DigestMod
		}
	}
	switch {
	case a.Listed && v.node.off(AllTotals):
		a.AllSum, a.AllDigest = a.Sum, a.Digest
	case a.Listed:
		a.AllSum, a.AllDigest = sum, digest
	case !a.HasTotals && !v.node.off(Totals):
		a.HasTotals, a.Sum, a.Digest = true, sum, digest
	}
}

// wait guesses when asking again may help the unvoted claim i, and reports
// whether another client's Redlock key is all that blocks it. A guess that is
// too late only costs time, because a vote is also pushed.
func (v *turn) wait(i int, ttl time.Duration) (time.Duration, bool) {
	until, ahead := int64(0), 0
	if v.hasRedlockKey() {
		if i == 0 { // unvoted head: the redlock key is another's
			if v.n.Redlock.plainEnd == forGood {
				return 0, true
			}
			return v.rest(v.n.Redlock.plainEnd), true
		}
	} else {
		until = v.soonest()
	}
	for _, c := range v.n.claims[:i] {
		if !c.Voted {
			ahead++
		}
		if !c.Voted || v.hasRedlockKey() {
			until = max(until, c.Expiry)
		}
	}
	if ahead > waitHintDepth {
		if v.node.off(FarHint) {
			return 0, false
		}
		return v.rest(v.soonest()) + time.Duration(int64(i)*ttl.Milliseconds()/4096)*time.Millisecond, false
	}
	return v.rest(until), false
}

// soonest returns when the first lease may end: now, while claims are being
// dropped.
func (v *turn) soonest() int64 {
	if v.n.droppedUpTo > 0 {
		return v.now
	}
	return slices.MinFunc(v.n.claims, func(a, b Claim) int { return cmp.Compare(a.Expiry, b.Expiry) }).Expiry
}

// rest returns the hint of an answer: the time until end, but at least 1 ms,
// because 0 means that there is no hint.
func (v *turn) rest(end int64) time.Duration {
	return time.Duration(max(1, end-v.now)) * time.Millisecond
}

// hasRedlockKey reports whether the name has a redlock key, as a mutex has that
// is in no bucket.
func (v *turn) hasRedlockKey() bool { return v.n.capacity == 1 && !v.counting && !v.node.Bucketed }

// resized is asked before the capacity of a request is compared with that in
// force: after a Resize clients of both numbers may be at work. It reports
// whether the newest Resize gives the capacity, and not the request.
func (v *turn) resized() bool { return v.counting && v.n.limit > 0 }

// forgetFence does what a node without MonotoneFence would do after every
// change.
func (v *turn) forgetFence() {
	if !v.node.off(MonotoneFence) {
		return
	}
	v.n.fence, v.n.fenceOf = 0, protocol.ID{}
	v.reclaimed()
}

// reclaimed sets the fence when the node begins to serve a name again.
func (v *turn) reclaimed() {
	if k := len(v.n.claims); k > 0 && v.n.fence == 0 {
		v.n.fence, v.n.fenceOf = v.n.claims[k-1].Ticket, v.n.claims[k-1].ID
	}
}
