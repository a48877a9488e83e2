//go:build search

package lease

import (
	"encoding/binary"
	"github.com/quorate/quorate/internal/protocol"
	"slices"
)

// Support for searching many futures: copying a claim, and encoding its state
// as bytes. Like package internal/sim/exhaustive, it is only built with the tag
// "search", because programs that use the library do not need it.
// Invariant: two claims with the same bytes behave the same from then on. If a
// field that decides something were missing, the search would take a state for
// one that it has seen, and would report that there is no violation.
// TestStateIsComplete changes each field and looks.

// Clone returns an independent copy, for searches over many futures.
func (c *Claim) Clone() *Claim {
	d := *c
	d.Out = slices.Clone(c.Out)
	d.State.peers = slices.Clone(c.State.peers)
	for i := range d.State.peers {
		if p := &d.State.peers[i]; p.extraOrNil != nil {
			m := *p.extraOrNil
			p.extraOrNil = &m
		}
	}
	return &d
}

// Permuted returns a copy that calls node order[i] node i. Nothing in the
// protocol tells nodes apart, so a search need not look at renamed states
// twice.
func (c *Claim) Permuted(order []int) *Claim {
	d := c.Clone()
	// The search must have sent everything that is to be sent before this: a
	// request identifies its node by the old number.
	d.Out = nil
	peers := slices.Clone(d.State.peers)
	for i, from := range order {
		d.State.peers[i] = peers[from]
	}
	return d
}

// AppendState appends everything that the claim's future depends on, with
// times relative to now and the past clamped, so that a search can tell
// whether it has been here before. What a phase does not read is left out, and
// so is what only reports (waiters).
func (c *Claim) AppendState(b []byte, now protocol.Time) []byte {
	b = append(b, byte(c.State.phase))
	// A claim that only tries differs from one that waits only in when it gives
	// up.
	b = AppendFlags(b, c.State.NoRenewal, c.State.raised, c.State.Try && c.State.votedOnce)
	if c.State.Try {
		b = c.State.AppendTime(b, c.giveUpAt, now)
	}
	b = binary.AppendUvarint(b, uint64(c.State.ticket))
	b = binary.AppendUvarint(b, c.State.Weight)
	b = binary.AppendUvarint(b, c.State.admittedCapacity)
	for _, t := range [...]protocol.Time{c.beatAt, c.countAt, c.State.shrunkAt} {
		b = c.State.AppendTime(b, t, now)
	}
	// The deadline of a claim that is not held is zero or of an earlier phase,
	// and the start of an attempt matters until it is settled. To write both
	// always would make one state look like many, and the search would not end.
	switch c.State.phase {
	case Joining:
		began := c.State.began
		if c.State.NotStarted() {
			began = protocol.Never // however much time passes until there is room
		}
		b = c.State.AppendTime(b, began, now)
		b = binary.AppendVarint(b, int64(c.State.settleRounds))
	case Waiting:
		b = binary.AppendVarint(b, int64(c.State.settleRounds))
	case Holding:
		b = c.State.AppendTime(b, c.State.deadline, now)
		if !c.State.Try {
			b = c.State.AppendTime(b, c.giveUpAt, now)
		}
	}
	b = binary.AppendVarint(b, int64(c.countPause))
	b = binary.AppendVarint(b, int64(c.State.listDepth))
	for i := range c.State.peers {
		b = c.State.appendPeer(b, &c.State.peers[i], now)
	}
	return b
}

func (c *Config) AppendTime(b []byte, t, now protocol.Time) []byte {
	switch t {
	case protocol.Never:
	case 0: // none, which is not now
		t = -protocol.Never
	// Anything more than a ttl in the past makes no further difference: no lease,
	// view or attempt is that old.
	default:
		t = max(t-now, -protocol.Time(c.TTL)-1)
	}
	return binary.AppendVarint(b, int64(t))
}

func AppendFlags(b []byte, flags ...bool) []byte {
	n := 0
	for i, f := range flags {
		if f {
			n |= 1 << i
		}
	}
	return binary.AppendVarint(b, int64(n))
}

func (v *State) appendPeer(b []byte, p *peer, now protocol.Time) []byte {
	m := p.extra()
	// A hint to a node that votes, or of a claim that is held, is looked at no
	// more.
	next, hinted := p.askAt, p.hinted
	if hinted && (p.vote || v.phase == Holding) {
		next, hinted = protocol.Never, false
	}
	b = AppendFlags(b, p.held, p.vote, p.refused, m.shrinkPending, m.earlyPush.Vote, p.askAgain, hinted,
		v.phase == Joining && p.behind, m.barred && !p.vote, p.pushUnsure, p.evicts, !p.vote && p.ended)
	b = binary.AppendUvarint(b, uint64(p.ticket))
	b = binary.AppendUvarint(b, uint64(p.incarnation))
	for _, t := range [...]protocol.Time{p.ackSent, p.leaseEnds(v), p.pendingSince, next} {
		b = v.AppendTime(b, t, now)
	}
	b = append(b, p.failures)
	if v.Counting {
		b = binary.AppendUvarint(b, m.limit)
		b = binary.AppendUvarint(b, uint64(m.limitAt))
		b = m.lowerSet.appendState(b)
		if v.phase == Holding {
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
