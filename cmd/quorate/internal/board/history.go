package board

import (
	"slices"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/lanes"
	"github.com/quorate/quorate/inspect"
)

// Bounds of what is kept of a name.
const (
	mostStretches = 900 // of one name
	mostWaiters   = 16  // whose waiting is kept; the others are counted
)

// What a node's lane shows. A node that is up shows nothing.
const (
	NodeGuard   = 1 // it is within its guard time
	NodeAway    = 2 // it is down, or does not serve
	NodeRefuses = 3 // it answers, and refuses what a lock needs
)

// part is what may be so for a while: a process holds a name, or waits for it;
// so many wait; a node is in a state.
type part struct {
	process string
	holds   bool
	several bool // others hold it, too
	number  int
}

// A stretch is a time in which a part was so.
type stretch struct {
	part
	from, to time.Time
	open     bool // it was so at the newest look
}

// history is what has happened at a name or a node, the oldest first.
type history struct{ all []stretch }

// see takes in what is so at a moment. What was so at the look before was so
// until now.
func (h *history) see(at time.Time, parts []part) {
	now := map[part]bool{}
	for _, p := range parts {
		now[p] = true
	}
	for i := range h.all {
		s := &h.all[i]
		if !s.open {
			continue
		}
		s.to, s.open = at, now[s.part]
		delete(now, s.part)
	}
	for _, p := range parts {
		if now[p] {
			delete(now, p)
			h.all = append(h.all, stretch{part: p, from: at, to: at, open: true})
		}
	}
	h.all = slices.DeleteFunc(h.all, func(s stretch) bool { return at.Sub(s.to) > span })
	h.all = slices.Delete(h.all, 0, max(0, len(h.all)-mostStretches))
}

// pause says that it is not known what is so now.
func (h *history) pause() {
	for i := range h.all {
		h.all[i].open = false
	}
}

// parts is what is so at a name.
func parts(r *inspect.Report) (all []part) {
	several := len(r.Holders) > 1
	for i := range r.Holders {
		all = append(all, part{process: Process(&r.Holders[i]), holds: true, several: several})
	}
	if several {
		all = append(all, part{holds: true, number: len(r.Holders)})
	}
	for i := range r.Waiters[:min(len(r.Waiters), mostWaiters)] {
		all = append(all, part{process: Process(&r.Waiters[i])})
	}
	if n := len(r.Waiters) + r.More; n > 0 {
		all = append(all, part{number: n})
	}
	return all
}

// spans are the stretches that a lane shows, as seen at a moment: value returns
// what it shows for a part, 0 for nothing.
func (h *history) spans(at time.Time, value func(p *part) int) (all []lanes.Span) {
	for i := range h.all {
		s := &h.all[i]
		if v := value(&s.part); v > 0 {
			to := s.to
			if s.open {
				to = at
			}
			all = append(all, lanes.Span{From: span - at.Sub(s.from), To: span - at.Sub(to), Value: v})
		}
	}
	return all
}
