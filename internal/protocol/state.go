package protocol

import (
	"encoding/binary"
	"slices"
)

// This file is for searches over many futures: copies of a claim, and its state as bytes.
//
// Invariant: two claims with the same bytes behave the same from then on. If a field that
// decides something were missing, the search would take a state for one that it has seen, and
// would report that there is no violation. TestStateIsComplete changes each field and looks.

// Clone returns an independent copy, for searches over many futures.
func (c *Claim) Clone() *Claim {
	d := *c
	d.Out = slices.Clone(c.Out)
	d.peers = slices.Clone(c.peers)
	for i := range d.peers {
		if p := &d.peers[i]; p.extraOrNil != nil {
			m := *p.extraOrNil
			p.extraOrNil = &m
		}
	}
	return &d
}

// Permuted returns a copy that calls node order[i] node i. Nothing in the
// protocol tells nodes apart, so a search need not look at renamed states twice.
func (c *Claim) Permuted(order []int) *Claim {
	d := c.Clone()
	d.Out = nil
	peers := slices.Clone(d.peers)
	for i, from := range order {
		d.peers[i] = peers[from]
	}
	return d
}

// AppendState appends everything that the claim's future depends on, with
// times relative to now and the past clamped, so that a search can tell
// whether it has been here before. What a phase does not read is left out, and
// so is what only reports (waiters).
func (c *Claim) AppendState(b []byte, now Time) []byte {
	when := func(t Time) {
		switch t {
		case Never:
		case 0: // none, which is not now
			t = -Never
		default:
			t = max(t-now, -Time(c.TTL)-1)
		}
		b = binary.AppendVarint(b, int64(t))
	}
	flags := func(fs ...bool) {
		n := 0
		for i, f := range fs {
			if f {
				n |= 1 << i
			}
		}
		b = binary.AppendVarint(b, int64(n))
	}
	b = append(b, byte(c.phase))
	flags(c.noRenewal, c.raised, c.Try && c.votedOnce)
	if c.Try {
		when(c.giveUpAt)
	}
	b = binary.AppendUvarint(b, uint64(c.ticket))
	b = binary.AppendUvarint(b, c.Weight)
	b = binary.AppendUvarint(b, c.admittedCapacity)
	when(c.beatAt)
	when(c.countAt)
	when(c.shrunkAt)
	switch c.phase {
	case Joining:
		when(c.began)
		b = binary.AppendVarint(b, int64(c.settleRounds))
	case Holding:
		when(c.deadline)
	}
	if c.phase == Waiting {
		b = binary.AppendVarint(b, int64(c.settleRounds))
	}
	b = binary.AppendVarint(b, int64(c.countPause))
	b = binary.AppendVarint(b, int64(c.listDepth))
	for i := range c.peers {
		p, m := &c.peers[i], c.peers[i].extra()
		next, hinted := p.askAt, p.hinted
		if hinted && (p.vote || c.phase == Holding) {
			next, hinted = Never, false
		}
		flags(p.held, p.vote, p.refused, m.shrinkPending, m.earlyPush.Vote, p.askAgain, hinted, c.phase == Joining && p.behind, m.barred && !p.vote, p.pushUnsure, p.outside)
		b = binary.AppendUvarint(b, uint64(p.ticket))
		b = binary.AppendUvarint(b, uint64(p.incarnation))
		when(p.ackSent)
		when(m.countsFrom)
		when(c.leaseEnds(p))
		when(p.pendingSince)
		when(next)
		b = append(b, p.failures)
		if c.Counting {
			b = binary.AppendUvarint(b, m.limit)
			b = binary.AppendUvarint(b, uint64(m.limitAt))
			b = m.lowerSet.appendState(b)
			if c.phase == Holding {
				b = m.admittedSet.appendState(b)
			}
		}
		if m.earlyPush.Vote {
			b = binary.AppendUvarint(b, uint64(m.earlyPush.Ticket))
			b = binary.AppendUvarint(b, uint64(m.earlyPush.Incarnation))
			b = binary.AppendUvarint(b, m.earlyPush.Sum)
			b = binary.AppendUvarint(b, m.earlyPush.Digest)
			b = binary.AppendUvarint(b, m.earlyPush.Limit)
			b = binary.AppendUvarint(b, uint64(m.earlyPush.LimitAt))
			b = binary.AppendVarint(b, int64(m.earlyPush.Late))
		}
	}
	return b
}

func (v *lowerSet) appendState(b []byte) []byte {
	known := byte(0)
	if v.known {
		known |= 1
	}
	if v.listed {
		known |= 2
	}
	b = append(b, known)
	b = binary.AppendUvarint(b, v.sum)
	b = binary.AppendUvarint(b, v.digest)
	b = binary.AppendUvarint(b, uint64(v.from))
	b = binary.AppendUvarint(b, v.prefixTotals.sum)
	b = binary.AppendUvarint(b, v.prefixTotals.digest)
	b = binary.AppendUvarint(b, v.all.sum)
	b = binary.AppendUvarint(b, v.all.digest)
	b = binary.AppendUvarint(b, uint64(len(v.lower)))
	for _, e := range v.lower {
		b = append(b, e.ID[:]...)
		b = binary.AppendUvarint(b, e.Weight)
	}
	return b
}
