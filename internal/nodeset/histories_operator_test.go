package nodeset_test

import (
	"fmt"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// decides has a configuration follow another one.
func (h *history) decides(of nodeset.Stamp, next *nodeset.Configuration) {
	if was := h.decided[of]; was != nil {
		if was.Stamp != next.Stamp {
			h.fault = fmt.Sprintf("%s and %s follow %s", was.Stamp, next.Stamp, of)
		}
		return
	}
	h.say("decided: %s %v %v", next.Stamp, next.Stage, next.Members)
	h.decided[of], h.latest = next, next
	if next.Stage == nodeset.Stable {
		h.lists = append(h.lists, next.Addrs())
	}
}

// runRegister has an operator put what is to follow, or read what was decided
// if next is nil. It may die before all servers have it.
func (h *history) runRegister(of, next *nodeset.Configuration) (found *nodeset.Configuration, read bool) {
	var there []*server
	var newest nodeset.RecordedNext
	members := deciders(of)
	for _, k := range h.rand.Perm(len(members)) {
		s := h.at(members[k].Addr)
		if s.up && s.whole && s.forged == nil && s.Set().Identity == members[k].Identity && !h.one(4) {
			there = append(there, s)
			if n := s.next[of.Stamp]; n.Version.Compare(newest.Version) > 0 {
				newest = n
			}
		}
	}
	if 2*len(there) <= len(members) {
		return nil, false
	}
	if newest.Config != nil {
		next = newest.Config
	}
	if next == nil {
		return nil, true
	}
	h.versions++
	if h.one(3) {
		there = there[:h.rand.IntN(len(there)+1)]
	}
	for _, s := range there {
		s.next[of.Stamp] = nodeset.RecordedNext{Of: of.Stamp,
			Version: protocol.Version{Seq: h.versions}, Config: next}
	}
	h.learn(of)
	if 2*len(there) <= len(members) {
		return nil, false
	}
	return next, false
}

// learn finds out what was decided to follow: a majority has it of one version,
// by one run or by that and a repair.
func (h *history) learn(of *nodeset.Configuration) {
	members, have := deciders(of), map[protocol.Version]int{}
	for _, m := range members {
		if s := h.at(m.Addr); s.Set().Identity == m.Identity && s.next[of.Stamp].Config != nil {
			n := s.next[of.Stamp]
			if have[n.Version]++; 2*have[n.Version] > len(members) {
				h.decides(of.Stamp, n.Config)
			}
		}
	}
}

// draw draws a change of the set.
func (h *history) draw() (ch change.Goal) {
	for _, m := range h.on.Members {
		if h.one(3) && len(ch.Remove)+1 < len(h.on.Members) {
			ch.Remove = append(ch.Remove, m.Addr)
		}
	}
	for _, a := range places {
		if s := h.at(a); h.on.Place(a) < 0 && s.forged == nil && h.one(3) && len(ch.Add) < 2 {
			ch.Add = append(ch.Add, nodeset.Member{Identity: fmt.Sprint("id", h.fresh()), Addr: a})
		}
	}
	return ch
}

// operate has the operator go on.
func (h *history) operate(goal func() change.Goal) {
	p := h.operator
	if p.Config() == nil {
		return
	}
	if h.exchange == nil {
		h.on = p.Config()
		h.exchange = &change.Exchange{Goal: goal(), Undo: h.one(6)}
		h.exchange.Decided(h.on)
	} else if p.Config().Stamp.Compare(h.on.Stamp) > 0 {
		h.on = p.Config()
		h.exchange.Decided(h.on)
	}
	e := h.exchange
	for i, m := range h.on.Members {
		s := h.at(m.Addr)
		switch has := s.Set(); {
		case !s.up || s.forged != nil || has.Identity != m.Identity:
			e.Silent(h.time(), i)
		case has.Stamp() == h.on.Stamp && has.Phase == nodeset.SetRecorded:
			if e.Saves(i) && h.one(2) {
				s.file = has
			}
			e.Moved(h.time(), h.time(), i, s.file.Stamp() == h.on.Stamp)
			e.Looked(i, s.Recovering(h.now) == 0, s.whole)
		}
	}
	next, ask := e.Propose(h.time(), ballot(h.fresh()))
	if ask {
		if found, read := h.runRegister(h.on, next); found != nil {
			h.on = found
			p.Decide(found)
			p.act()
			e.Decided(found)
		} else if read && next == nil {
			e.Read()
		}
	}
	if e.Outcome() != change.ExchangeGoesOn {
		h.exchange = nil
	}
}
