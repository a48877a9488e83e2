package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
)

// powerless: the site loses power in any stage of an exchange. Each node comes
// back with all it had, with an older file, or with nothing. Those that have
// left are stopped for good.
var powerless = generator{
	name: "exchange powerless",
	set: func(r *rand.Rand, s *setting) {
		exchangeSet(r, s)
		s.members, s.nodes, s.record = 3, 5, false
	},
	plan: func(w *world) {
		w.assemble(true)
		w.allLoop()
		operator, files := w.procs[0], w.rng.IntN(3)
		w.at(w.around(w.ttl), func() { operator.exchange(w.changes()...) })
		for i := range 8 {
			w.at(time.Duration(i)*w.guard/4, func() {
				for _, n := range w.nodes {
					if files > 0 && w.rng.IntN(2) == 0 && !n.down {
						n.save()
					}
				}
			})
		}
		w.once(func() bool { return w.latest().Stamp.Epoch() > w.rng.Uint64N(5) }, 4*w.guard, w.around(w.guard/2), func() {
			lost := files == 0 && slices.ContainsFunc(w.nodes, w.retired) // nothing tells a client of before which set counts
			for _, n := range w.nodes {
				n.crash()
				switch {
				case files == 0:
					n.forget()
				case files == 1:
					n.revert()
				}
				if w.retired(n) {
					n.gone = true
					continue
				}
				w.at(w.around(w.nodeTimeout), n.restart)
			}
			for _, p := range w.procs {
				if w.rng.IntN(2) == 0 || lost {
					p.crash()
					w.at(w.around(w.nodeTimeout), p.restart)
				}
			}
			w.forgetDecisions()
			for i := range 4 {
				w.at(time.Duration(i+2)*w.guard, w.emptyAhead)
			}
		})
	},
}

// emptyAhead is what an operator does with a node that stays ahead of the
// others, as the decision that it carries out has been forgotten. One that had
// left by that decision, and was stopped, is started again first.
func (w *world) emptyAhead() {
	for _, n := range w.nodes {
		if n.gone && !w.retired(n) {
			n.gone = false
			n.restart()
		}
		set := n.model.Set()
		has := set.Recorded()
		if n.down || has == nil || slices.ContainsFunc(w.procs, func(p *proc) bool { return p.alive && p.members.Stamp().Epoch() >= has.Stamp.Epoch() }) {
			continue
		}
		w.log("node %d is ahead, and is emptied", n.idx+1)
		n.forget()
		n.eachLink((*link).snap)
	}
	w.forgetDecisions()
}

// forgetDecisions has what was decided be open once more that no process knows
// any longer, and no majority of the nodes: the site has lost its registers as
// well.
func (w *world) forgetDecisions() {
	var forgotten []nodeset.Stamp
	for stamp, c := range w.decided {
		known := slices.ContainsFunc(w.procs, func(p *proc) bool { return p.alive && p.members.Stamp() == stamp })
		if stamp.Epoch() > 1 && !known && !w.remembered(c) {
			forgotten = append(forgotten, stamp)
		}
	}
	for _, stamp := range forgotten {
		delete(w.decided, stamp)
		w.forgotten[stamp] = true
	}
}

// remembered reports whether a majority of the nodes that decided a
// configuration serves it, or has it in its register.
func (w *world) remembered(c *nodeset.Configuration) bool {
	for _, before := range w.decided {
		if before.Stamp.Epoch()+1 != c.Stamp.Epoch() {
			continue
		}
		have := uint32(0)
		for _, n := range w.nodes {
			set := n.model.Set()
			k, s := before.Member(set.Identity), n.model.Name(nodeset.SuccessorName(before.Stamp)).Recorded()
			if k >= 0 && (set.Stamp() == c.Stamp || string(s.Value) == c.String()) {
				have |= 1 << before.Members[k].Number
			}
		}
		if decided(before, have) {
			return true
		}
	}
	return false
}
