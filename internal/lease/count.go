package lease

import (
	"math/bits"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns the counting rule, which only semaphores need: votes alone
// admit too many.
// Invariant: leaving out a view, or knowing less of one, can only refuse.

// takeLowerSet takes what an answer says of the lower claims. Where votes are
// all that is needed it is not asked for, and not kept.
func (c *Claim) takeLowerSet(m *peerExtra, r protocol.Request, a protocol.Answer) {
	// A holder keeps the digests it was admitted by: newer views are subsets,
	// but one that is newer than the others would no longer compare equal to
	// them.
	if a.HasTotals && (!m.known || c.phase != Holding) {
		m.known, m.sum, m.digest, m.all = true, a.Sum, a.Digest, totals{a.Sum, a.Digest}
		if a.Listed {
			m.all = totals{a.AllSum, a.AllDigest}
		}
	}
	// Lists are counted, not compared: the newest is the best.
	switch base := (totals{a.BaseSum, a.BaseDigest}); {
	case a.HasTotals && a.Sum == 0:
		m.list(nil, 0, totals{})
	case r.List && a.Vote && !a.Listed:
		if r.Ticket == c.listFrom() && c.listDepth > 0 {
			c.listDepth--
		}
	case !a.Listed || r.Op != protocol.OpBeat && base != totals{}:
	case base == totals{}: // all of them
		m.list(a.Lower, 0, base)
	case r.Ticket > 0:
		m.list(a.Lower, r.Ticket, base)
	}
}

func (v *lowerSet) list(lower []protocol.Lower, from protocol.Ticket, base totals) {
	v.listed, v.lower, v.from, v.prefixTotals = true, lower, from, base
}

// How far back lists may go: 4 ms, and sixteen times as far with each step.
const (
	shortestList = protocol.Ticket(1) << 12
	firstDepth   = 2 // a second
	fullDepth    = 6
)

// listFrom is where the lists begin that are asked for. What differs between
// the nodes is mostly recent, so they go back for a second first; when the
// totals of what is older differ too, sixteen times as far, and then to the
// beginning. A node does not tell more than some hundred claims: where there
// are more, a sixteenth as far.
func (c *Claim) listFrom() protocol.Ticket {
	if back := shortestList << (4 * c.listDepth); c.listDepth < fullDepth && c.ticket > back {
		return c.ticket - back
	}
	return 0
}

// deepenLists has the next lists go back further if the older claims are not
// the same in q of the views that are listed; in all of them for a holder,
// since any node may go and the rest must still admit it.
func (c *Claim) deepenLists(now protocol.Time) {
	for _, set := range c.Sets.Sets() {
		listed, need := c.listed(now, set), protocol.NeedOf(set)
		if c.phase == Holding {
			need = max(need, listed)
		}
		if set != 0 && listed >= protocol.NeedOf(set) && c.comparable(now, set) < need {
			c.listDepth = min(c.listDepth+1, fullDepth)
			return
		}
	}
}

// count asks for the lists when q votes are there and the counting rule does
// not admit: at once, and "again soon (a round trip, doubling, jittered)".
func (c *Claim) count(now protocol.Time, votes uint32) {
	if !c.Sets.Met(votes) {
		c.countAt, c.countPause = protocol.Never, 0
		return
	}
	if c.countPause > 0 && now < c.countAt {
		return
	}
	c.countPause = min(max(2*c.countPause, 2*time.Millisecond), c.interval(), 2*c.NodeTimeout)
	c.deepenLists(now)
	c.countAt = now.Add(c.countPause - c.countPause*time.Duration(c.ID[0])/1024)
	for i := range c.peers {
		if p := &c.peers[i]; p.held && p.pendingSince == 0 {
			c.send(now, i, protocol.OpBeat)
		}
	}
}

// fits is the counting rule for semaphores. N - V nodes tell nothing, so each
// lower claim is taken to be on all of these: "a lower claim e counts if (views
// that contain e) + (N - V) >= q".
//
// Only voting views whose content is known are used; leaving a view out moves
// every claim it contains from "contained" to "N - V" and adds one to the
// others, so it can only refuse. Equal digests and sums mean equal content:
// then each claim is in all V views, counts, and by the votes they all fit.
//
// Sums and digests may be of more than the lower claims: where a list is asked
// for a node also tells those of all claims with votes. That can only refuse,
// too. Let q views lie within one set. A claim that is not in the set is in V -
// q views at most, so it does not count. And the node that votes for all of the
// set has room for it.
//
// A holder hears of one node after the other how it has gone on, and may not be
// able to compare what is new with what is old. It still knows what it knew
// when it was last admitted, and claims only ever go from a view.
func (c *Claim) fits(now protocol.Time) bool {
	if c.fitsNow(now) {
		return true
	}
	if c.phase != Holding {
		return false
	}
	c.swapAdmitted()
	defer c.swapAdmitted()
	return c.fitsNow(now)
}

// swapAdmitted exchanges what is known for what was known.
func (c *Claim) swapAdmitted() {
	for i := range c.peers {
		if m := c.peers[i].extraOrNil; m != nil {
			m.lowerSet, m.admittedSet = m.admittedSet, m.lowerSet
		}
	}
}

// saveAdmitted keeps what admits the claim. It costs a copy for each node, so
// it is done for counted claims only: a vote alone admits all others, and a
// vote stays.
func (c *Claim) saveAdmitted(now protocol.Time) {
	if !c.Counting || !c.Voted(now) || !c.fitsNow(now) {
		return
	}
	for i := range c.peers {
		if m := c.peers[i].extraOrNil; m != nil {
			m.admittedSet = m.lowerSet
		}
	}
}

// fitsNow is fits by what is known now: in each of the sets.
func (c *Claim) fitsNow(now protocol.Time) bool {
	return c.fitsIn(now, c.Sets.Present) && (c.Sets.Next == 0 || c.fitsIn(now, c.Sets.Next))
}

func (c *Claim) fitsIn(now protocol.Time, set uint32) bool {
	if equal, sum := c.equalDigests(now, set); equal >= protocol.NeedOf(set) && (!c.resizeKnown() || sum+c.Weight <= c.capacity(now)) {
		return true
	}
	if c.fitsBySum(now, set) {
		return true
	}
	for i := range c.peers {
		if v := c.peers[i].extra(); set&(1<<i) != 0 && v.listed && c.counted(now, set, v.from) {
			return true
		}
	}
	return false
}

// equalDigests returns how many usable voting views, at most, lie within one
// set that a node votes for, and the weight of that set: the lower claims, or
// all claims with votes. A node that lists the lower claims tells the totals of
// all as well.
func (c *Claim) equalDigests(now protocol.Time, of uint32) (most int, sum uint64) {
	for i := range c.peers {
		if of&(1<<i) == 0 {
			continue
		}
		a := c.peers[i].extra()
		for _, set := range [2]totals{{a.sum, a.digest}, a.all} {
			same := 0
			for j := range c.peers {
				p := &c.peers[j]
				if b := p.extra(); of&(1<<j) != 0 && c.usable(p, now) && p.vote && b.known && (set == totals{b.sum, b.digest} || set == b.all) {
					same++
				}
			}
			if same > most || same == most && set.sum < sum {
				most, sum = same, set.sum
			}
		}
	}
	return most, sum
}

// differ: not all views are known to have the same content.
func (c *Claim) differ(now protocol.Time) bool {
	all := c.Sets.All()
	same, _ := c.equalDigests(now, all)
	return same < bits.OnesCount32(c.exact(now)&all)
}

// fitsBySum shows without any list that there is room: a claim that counts is
// in at least k = q - (N - V) of the V views, so together they weigh at most a
// k-th of what the views do.
func (c *Claim) fitsBySum(now protocol.Time, set uint32) bool {
	views, sum := 0, uint64(0)
	for i := range c.peers {
		p := &c.peers[i]
		if m := p.extra(); set&(1<<i) != 0 && c.usable(p, now) && p.vote && m.known {
			views++
			sum += m.sum
		}
	}
	k := protocol.NeedOf(set) - (bits.OnesCount32(set) - views)
	return views >= protocol.NeedOf(set) && k > 0 && c.Weight+sum/uint64(k) <= c.capacity(now)
}

// counted is shown by the lists: by those that begin at a ticket, and by those
// of all claims. Only a total stands for the claims before the lists, and it
// counts in any case; once where two views tell the same.
func (c *Claim) counted(now protocol.Time, set uint32, from protocol.Ticket) bool {
	type tally struct {
		views  int
		weight uint64
	}
	lower, bases, views := map[protocol.ID]tally{}, map[totals]bool{}, 0
	for i := range c.peers {
		p := &c.peers[i]
		v := p.extra()
		if set&(1<<i) == 0 || !v.listed || !p.vote || !c.usable(p, now) || v.from != from && v.from != 0 {
			continue
		}
		views++
		bases[v.prefixTotals] = true
		for _, e := range v.lower {
			t, known := lower[e.ID]
			if !known || e.Weight < t.weight {
				t.weight = e.Weight // claims only ever get lighter: this view is the newer one
			}
			t.views++
			lower[e.ID] = t
		}
	}
	if views < protocol.NeedOf(set) {
		return false
	}
	total := c.Weight
	for b := range bases {
		total += b.sum
	}
	for _, t := range lower {
		if t.views+bits.OnesCount32(set)-views >= protocol.NeedOf(set) {
			total += t.weight
		}
	}
	return total <= c.capacity(now)
}

// comparable returns how many voting views, at most, are listed from the same
// ticket on and have the same before it.
func (c *Claim) comparable(now protocol.Time, set uint32) (most int) {
	for i := range c.peers {
		same := 0
		a := c.peers[i].extra()
		for j := range c.peers {
			p := &c.peers[j]
			if b := p.extra(); set&(1<<i) != 0 && set&(1<<j) != 0 && b.listed && p.vote && c.usable(p, now) && a.from == b.from && a.prefixTotals == b.prefixTotals {
				same++
			}
		}
		most = max(most, same)
	}
	return most
}

func (c *Claim) listed(now protocol.Time, set uint32) int {
	n := 0
	for i := range c.peers {
		if p := &c.peers[i]; set&(1<<i) != 0 && p.extra().listed && p.vote && c.usable(p, now) {
			n++
		}
	}
	return n
}
