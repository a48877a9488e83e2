package sim

import "time"

// This file owns what fails in a schedule: at random, and as aims ask for it.

// faults are what may still fail, and what has failed beyond what the nodes and
// the processes know of themselves.
type faults struct {
	w            *world
	draining     bool // faults have stopped, and no participant starts another acquisition
	missing      int  // nodes that stay down from the start
	lateMessages bool // a break leaves messages behind that arrive late
}

// span is how long a fault lasts: not long, about a beat, a lease or the guard
// time.
func (f *faults) span() time.Duration {
	w := f.w
	return w.around([...]time.Duration{w.nodeTimeout / 4, w.nodeTimeout * 2, w.ttl / 3, w.ttl, w.guard}[w.rng.IntN(5)])
}

// randomFaults spreads n random faults over the schedule.
func (f *faults) randomFaults(n int) {
	for range n {
		f.w.at(time.Duration(f.w.rng.Int64N(int64(f.w.length))), f.randomFault)
	}
}

// randomFault is one random fault, and what ends it.
func (f *faults) randomFault() {
	w := f.w
	if f.draining {
		return
	}
	p := w.procs[w.rng.IntN(len(w.procs))]
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	d, kind := f.span(), w.rng.IntN(15)
	if w.limping {
		n = w.nodes[w.rng.IntN(f.spare())]
		if kind == 2 || kind == 9 || kind == 10 || kind == 11 || kind == 14 { // of a whole process
			kind = 3 * w.rng.IntN(2)
		}
	}
	l := p.links[n.idx]
	switch kind {
	case 0, 1: // a partition between one process and one node
		l.cut(f.directions()...)
		w.at(d, func() { l.heal(w.rng.IntN(2) == 0) })
	case 2:
		f.isolate(p, d)
	case 3:
		l.snap()
	case 4, 5, 6:
		if !n.down {
			f.restartNode(n, d)
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
		n.refuses(true, w.rng.IntN(2) == 0)
		w.at(d, func() { n.refuses(false, false) })
	case 13:
		if !w.faithful {
			f.leapClock(n, d)
		}
	case 14:
		if !w.record { // until it hears of the nodes, its answers about a record are too old
			p.sleep(d, w.rng.IntN(4) > 0)
		}
	}
}

// isolate cuts a process off from all nodes for d.
func (f *faults) isolate(p *proc, d time.Duration) {
	for _, l := range p.links {
		l.cut(f.directions()...)
	}
	f.w.at(d, func() {
		for _, l := range p.links {
			l.heal(f.w.rng.IntN(2) == 0)
		}
	})
}

// restartNode restarts a node: without its memory, with all of it, or with an
// old one.
func (f *faults) restartNode(n *node, d time.Duration) {
	w, how := f.w, f.w.rng.IntN(4)
	if w.faithful {
		how = 2
	}
	if how == 3 {
		n.save()
		w.at(d/4, func() { f.bounce(n, d, (*node).revert) })
		return
	}
	f.bounce(n, d, [...]func(*node){(*node).forget, (*node).forget, func(*node) {}}[how])
}

// leapClock sets a node's clock forward by d, back, or by too little to be
// noticed, or nearly so.
func (f *faults) leapClock(n *node, d time.Duration) {
	w := f.w
	switch w.rng.IntN(4) {
	case 0:
		d = time.Duration(w.rng.Int64N(int64(w.borne())))
	case 1, 2:
		d = -min(d, w.ttl) // what was stored before lives on for so long
	}
	n.leap(d)
}

// directions: both, requests only or answers only.
func (f *faults) directions() []int {
	return [...][]int{{requests, answers}, {requests}, {answers}}[f.w.rng.IntN(3)]
}

// bounce takes a node down for a while.
func (f *faults) bounce(n *node, d time.Duration, memory func(*node)) {
	if n.down || f.draining {
		return
	}
	n.crash()
	memory(n)
	f.w.stopRetired()
	f.w.at(d, func() {
		if !f.draining && !n.gone {
			n.restart()
		}
	})
}

// shuffled returns the nodes in a random order, so that an aim can call them a,
// b and c.
func (f *faults) shuffled() []*node {
	ns := append([]*node(nil), f.w.nodes...)
	f.w.rng.Shuffle(len(ns), func(i, j int) { ns[i], ns[j] = ns[j], ns[i] })
	return ns
}

// wipe restarts a node without its memory, or with an old one.
func (f *faults) wipe(n *node, old bool) {
	n.crash()
	if old {
		n.revert()
	} else {
		n.forget()
	}
	n.restart()
}

// miss takes some nodes down for good.
func (f *faults) miss(nodes int) {
	for _, n := range f.shuffled()[:nodes] {
		n.gone = true
		n.crash()
		f.missing++
	}
}

// spare is how many nodes may be missing.
func (f *faults) spare() int { return (len(f.w.nodes) - 1) / 2 }

// shuttle has one process reach two nodes only for a while, one of which then
// loses its data or comes back with an old one.
func (f *faults) shuttle() {
	w := f.w
	if f.draining {
		return
	}
	ns := f.shuffled()
	p := w.procs[w.rng.IntN(len(w.procs))]
	l := p.to(ns[2])
	l.cut(f.directions()...)
	ns[0].save()
	w.at(w.around(w.ttl), func() {
		switch w.rng.IntN(3) {
		case 0:
			f.bounce(ns[0], w.around(w.nodeTimeout), (*node).forget)
		case 1:
			f.bounce(ns[0], w.around(w.nodeTimeout), (*node).revert)
		default:
			p.pause()
			w.at(w.around(2*w.ttl), p.resume)
		}
		w.at(w.around(w.ttl), func() { l.heal(w.rng.IntN(2) == 0) })
	})
}

// wallsApart has the wall clocks of the processes be behind the true time, each
// by more.
func (f *faults) wallsApart() {
	for i, p := range f.w.procs {
		p.off = -time.Duration(i) * f.w.skew / time.Duration(2*len(f.w.procs))
		p.adjust()
	}
}

// evictAtTimes has operators evict n times.
func (f *faults) evictAtTimes(n int) {
	w := f.w
	for range n {
		w.at(w.around(w.length/2), func() {
			of := w.of[w.rng.IntN(len(w.of))].holders
			if len(of) > 0 && !f.draining {
				f.evict(of[w.rng.IntN(len(of))], f.shuffled()[:1+w.rng.IntN(len(w.nodes))], 8)
			}
		})
	}
}

// evict has an operator ask some nodes to end a hold, and again while it lasts.
// Where nothing fails, the word of a quorum ends it.
func (f *faults) evict(a *attempt, nodes []*node, times int) {
	w, by := f.w, uint32(0) // the words of two operators, or of two times, are not one
	for _, n := range nodes {
		if n.evict(a) {
			by |= 1 << n.idx
		}
	}
	w.at(w.around(2*w.slowest()), func() {
		switch {
		case !a.valid() || f.draining:
		case times > 0:
			f.evict(a, nodes, times-1)
		case w.clean && a.Sets.Met(by):
			w.fail("evicted", "%v holds on against the word of a quorum", a)
		}
	})
}

// setBack returns by how much the clock of a node has been set back at most.
func (f *faults) setBack() (most time.Duration) {
	for _, n := range f.w.nodes {
		most = max(most, n.setBack)
	}
	return most
}

// stop ends the faults: what is down comes up, and every waiter is to be
// served, but no participant starts again.
func (f *faults) stop() {
	w := f.w
	w.log("faults stop")
	f.draining, w.steps = true, nil
	for _, n := range w.nodes {
		n.setRight()
		if n.model.Forged(n.millis(w.now)) { // its operator learns of it and empties it
			n.forget()
		}
		n.slow = 1
		n.refuses(false, false)
		n.resume()
		if n.down && !n.gone {
			n.restart()
		}
	}
	w.limit = w.limit.add(f.setBack()) // what was stored before ends so much later
	w.recordAgain()
	w.exchangesEnd()
	for _, p := range w.procs {
		p.off = 0
		p.adjust()
		p.resume()
		p.restart()
		for _, l := range p.links {
			l.pushCut = false
			l.heal(w.rng.IntN(2) == 0)
		}
		for _, a := range p.parts {
			a.drain()
		}
	}
	if w.record {
		w.lastly()
	}
}

// evict has a node say that an operator ends a hold, and reports whether it
// does.
func (n *node) evict(a *attempt) (says bool) {
	n.w.tape.note("evict %s %d", a.part.label(), n.idx+1)
	if n.down || n.paused {
		return false
	}
	n.w.log("an operator ends %v at node %d", a, n.idx)
	_, outs := a.part.data(n).Evict(n.millis(n.w.now), a.Ticket())
	for _, o := range outs {
		if o.Push.ID == a.ID {
			says = true
			a.evictedBy |= 1 << n.idx
		}
		n.push(o)
	}
	return says
}
