package nodeset_test

import (
	"github.com/quorate/quorate/internal/nodeset"
)

// forge has a server show a configuration of its own: the same one in all of a
// history, as a client may remember what it has shown.
func (h *history) forge() {
	s := h.at(h.liar)
	has := s.Set()
	if s.forged != nil {
		s.forged = nil
	} else if has.Config != nil && has.Phase == nodeset.SetRecorded && h.spares(s) {
		c := *has.Config
		c.Stamp, c.Stage = nodeset.StampOf(uint64(90+h.rand.IntN(9)), ballot(h.fresh())), nodeset.Stable
		c.Members = []nodeset.Member{{Number: 0, Identity: has.Identity, Addr: "Y"}}
		if h.one(2) {
			c.Origin = c.Stamp
		}
		forged := recordedAs(&c, has.Identity)
		s.forged = &forged
	}
	h.cut(s)
}

// cut ends the connections to a server.
func (h *history) cut(s *server) {
	for _, p := range []*party{h.clients[0].party, h.clients[1].party, h.operator} {
		for i, o := range p.conns {
			if o == s {
				p.drop(i)
				p.act()
			}
		}
	}
}

// restart has a server come back with its file, which may be old.
func (h *history) restart(s *server) {
	if s.forged != nil || s.Set().Config == nil || s.file.Config == nil || !h.spares(s) {
		return
	}
	h.say("%q comes back with %s", s.Set().Identity, s.file.Stamp())
	h.keep(s, s.file)
	s.next, s.whole = map[nodeset.Stamp]nodeset.RecordedNext{}, false
	h.cut(s)
}

// step has something happen.
func (h *history) step() {
	i := h.rand.IntN(2)
	l := h.clients[i]
	p := l.party
	if h.one(3) {
		p = h.operator
	}
	switch n := h.rand.IntN(40); {
	case n < 12:
		if all := p.numbers(); len(all) > 0 {
			p.connect(all[h.rand.IntN(len(all))])
		}
	case n < 16:
		if len(p.asks) > 0 {
			p.answer()
		}
	case n < 24:
		for range 3 {
			h.vote(l, h.rand.IntN(12))
		}
	case n < 27:
		h.now += int64(h.rand.IntN(historyGuard))
	case n < 33:
		h.operate(h.draw)
	case n < 34: // the operator dies
		h.operator, h.exchange = h.start(h.lists[len(h.lists)-1]...), nil
	case n < 35:
		if h.one(3) {
			h.begin(i)
		} else if h.one(2) { // it sleeps
			for k := range l.conns {
				p.drop(k)
			}
		}
	default:
		h.trouble(n, h.server())
	}
}

// trouble has something happen to a server.
func (h *history) trouble(n int, s *server) {
	switch {
	case n < 36:
		if s.up = !s.up; !s.up {
			h.cut(s)
		}
	case n < 37:
		if s.file = s.Set(); h.one(2) {
			h.restart(s)
		}
	case n < 38:
		h.forge()
	case n < 39:
		if s.forged == nil && s.Set().Config != nil && h.spares(s) {
			h.say("%q loses its data", s.Set().Identity)
			file := s.file
			for a, o := range h.servers {
				if o == s {
					h.lose(a)
				}
			}
			s.file = file
			h.cut(s)
		}
	default:
		h.repairs(s)
	}
}

// repairs brings a server that votes what the others have.
func (h *history) repairs(s *server) {
	if c := s.Set().Config; c != nil && s.up && s.forged == nil && s.Recovering(h.now) == 0 {
		h.repair(s, c)
		for next := h.decided[""]; next != nil; next = h.decided[next.Stamp] {
			h.learn(next)
		}
	}
}
