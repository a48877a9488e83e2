package sim

import "time"

// span is how long a fault lasts: not long, about a beat, a lease or the guard
// time.
func (w *world) span() time.Duration {
	return w.around([...]time.Duration{w.nodeTimeout / 4, w.nodeTimeout * 2, w.ttl / 3, w.ttl, w.guard}[w.rng.IntN(5)])
}

// randomFaults spreads n random faults over the schedule.
func (w *world) randomFaults(n int) {
	for range n {
		w.at(time.Duration(w.rng.Int64N(int64(w.length))), w.randomFault)
	}
}

// randomFault is one random fault, and what ends it.
func (w *world) randomFault() {
	if w.draining {
		return
	}
	p := w.procs[w.rng.IntN(len(w.procs))]
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	d, kind := w.span(), w.rng.IntN(15)
	if w.limping {
		n = w.nodes[w.rng.IntN(w.spare())]
		if kind == 2 || kind == 9 || kind == 10 || kind == 11 || kind == 14 { // of a whole process
			kind = 3 * w.rng.IntN(2)
		}
	}
	l := p.links[n.idx]
	switch kind {
	case 0, 1: // a partition between one process and one node
		l.cut(w.directions()...)
		w.at(d, func() { l.heal(w.rng.IntN(2) == 0) })
	case 2:
		w.isolate(p, d)
	case 3:
		l.snap()
	case 4, 5, 6:
		if !n.down {
			w.restartNode(n, d)
		}
	case 7:
		if !n.down {
			n.pause()
			w.at(d, n.resume)
		}
	case 8:
		n.slow = 1 + w.rng.IntN(60)
		w.at(d, func() { n.slow = 1 })
	case 9, 10:
		p.pause()
		w.at(d, p.resume)
		if w.rng.IntN(3) == 0 {
			p.crash()
			w.at(d, p.restart)
		}
	case 11:
		for _, l := range p.links {
			l.pushCut = true
			w.at(d, func() { l.pushCut = false; l.tell() })
		}
	case 12:
		n.refuses(true)
		w.at(d, func() { n.refuses(false) })
	case 13:
		if !w.faithful {
			w.leapClock(n, d)
		}
	case 14:
		if !w.record { // until it hears of the nodes, its answers about a record are too old
			p.sleep(d, w.rng.IntN(4) > 0)
		}
	}
}

// isolate cuts a process off from all nodes for d.
func (w *world) isolate(p *proc, d time.Duration) {
	for _, l := range p.links {
		l.cut(w.directions()...)
	}
	w.at(d, func() {
		for _, l := range p.links {
			l.heal(w.rng.IntN(2) == 0)
		}
	})
}

// restartNode restarts a node: without its memory, with all of it, or with an
// old one.
func (w *world) restartNode(n *node, d time.Duration) {
	how := w.rng.IntN(4)
	if w.faithful {
		how = 2
	}
	if how == 3 {
		n.save()
		w.at(d/4, func() { w.bounce(n, d, (*node).revert) })
		return
	}
	w.bounce(n, d, [...]func(*node){(*node).forget, (*node).forget, func(*node) {}}[how])
}

// leapClock sets a node's clock forward by d, back, or by too little to be
// noticed, or nearly so.
func (w *world) leapClock(n *node, d time.Duration) {
	switch w.rng.IntN(4) {
	case 0:
		d = time.Duration(w.rng.Int64N(int64(w.borne())))
	case 1, 2:
		d = -min(d, w.ttl) // what was stored before lives on for so long
	}
	n.leap(d)
}

// directions: both, requests only or answers only.
func (w *world) directions() []int {
	return [...][]int{{requests, answers}, {requests}, {answers}}[w.rng.IntN(3)]
}

// bounce takes a node down for a while.
func (w *world) bounce(n *node, d time.Duration, memory func(*node)) {
	if n.down || w.draining {
		return
	}
	n.crash()
	memory(n)
	w.stopRetired()
	w.at(d, func() {
		if !w.draining && !n.gone {
			n.restart()
		}
	})
}
