package trial

import (
	"time"

	"github.com/quorate/quorate/internal/sim/world"
)

// The faults in a schedule, both random ones and those that an aim asks for.

// span is how long a fault lasts: not long, about a beat, a lease or the guard
// time.
func (f *faults) span() time.Duration {
	w := f.w
	return w.Around([...]time.Duration{w.NodeTimeout / 4, w.NodeTimeout * 2, w.TTL / 3,
		w.TTL, w.Guard}[w.RNG.IntN(5)])
}

// RandomFaults spreads n random faults over the schedule.
func (f *faults) RandomFaults(n int) {
	for range n {
		f.w.At(time.Duration(f.w.RNG.Int64N(int64(f.w.Length))), f.randomFault)
	}
}

// randomFault is one random fault, and what ends it.
func (f *faults) randomFault() {
	w := f.w
	if f.w.Draining {
		return
	}
	p := w.Procs[w.RNG.IntN(len(w.Procs))]
	n := w.Nodes[w.RNG.IntN(len(w.Nodes))]
	d, kind := f.span(), w.RNG.IntN(15)
	if w.Limping {
		n = w.Nodes[w.RNG.IntN(f.w.Spare())]
		if kind == 2 || kind == 9 || kind == 10 || kind == 11 || kind == 14 { // of a whole process
			kind = 3 * w.RNG.IntN(2)
		}
	}
	l := p.Links[n.Index]
	switch kind {
	case 0, 1: // a partition between one process and one node
		l.Cut(f.Directions()...)
		w.At(d, func() { l.Heal(w.RNG.IntN(2) == 0) })
	case 2:
		f.isolate(p, d)
	case 3:
		l.Snap()
	case 4, 5, 6:
		if !n.Down {
			f.restartNode(n, d)
		}
	case 7:
		if !n.Down {
			n.Pause()
			w.At(d, n.Resume)
		}
	case 8:
		n.Slow = 1 + w.RNG.IntN(60)
		w.At(d, func() { n.Slow = 1 })
	case 9, 10:
		p.Pause()
		w.At(d, p.Resume)
		if w.RNG.IntN(3) == 0 {
			p.Crash()
			w.At(d, p.Restart)
		}
	case 11:
		for _, l := range p.Links {
			l.PushCut = true
			w.At(d, func() { l.PushCut = false; l.Tell() })
		}
	case 12:
		n.Refuses(true, w.RNG.IntN(2) == 0)
		w.At(d, func() { n.Refuses(false, false) })
	case 13:
		if !w.Faithful {
			f.leapClock(n, d)
		}
	case 14:
		if !w.Record { // until it hears of the nodes, its answers about a record are too old
			p.Sleep(d, w.RNG.IntN(4) > 0)
		}
	}
}

// isolate cuts a process off from all nodes for d.
func (f *faults) isolate(p *world.Proc, d time.Duration) {
	for _, l := range p.Links {
		l.Cut(f.Directions()...)
	}
	f.w.At(d, func() {
		for _, l := range p.Links {
			l.Heal(f.w.RNG.IntN(2) == 0)
		}
	})
}

// restartNode restarts a node: without its memory, with all of it, or with an
// old one.
func (f *faults) restartNode(n *world.Node, d time.Duration) {
	w, how := f.w, f.w.RNG.IntN(4)
	if w.Faithful {
		how = 2
	}
	if how == 3 {
		n.Save()
		w.At(d/4, func() { f.Bounce(n, d, (*world.Node).Revert) })
		return
	}
	f.Bounce(n, d, [...]func(*world.Node){(*world.Node).Forget, (*world.Node).Forget, func(*world.Node) {}}[how])
}

// leapClock sets a node's clock forward by d, back, or by too little to be
// noticed, or nearly so.
func (f *faults) leapClock(n *world.Node, d time.Duration) {
	w := f.w
	switch w.RNG.IntN(4) {
	case 0:
		d = time.Duration(w.RNG.Int64N(int64(w.Borne())))
	case 1, 2:
		d = -min(d, w.TTL) // what was stored before lives on for so long
	}
	n.Clock.Leap(d)
}

// Directions: both, requests only or answers only.
func (f *faults) Directions() []int {
	return [...][]int{{world.Requests, world.Answers}, {world.Requests}, {world.Answers}}[f.w.RNG.IntN(3)]
}

// Bounce takes a node down for a while.
func (f *faults) Bounce(n *world.Node, d time.Duration, memory func(*world.Node)) {
	if n.Down || f.w.Draining {
		return
	}
	n.Crash()
	memory(n)
	f.w.Decisions.StopRetired()
	f.w.At(d, func() {
		if !f.w.Draining && !n.Gone {
			n.Restart()
		}
	})
}

// Shuffled returns the nodes in a random order, so that an aim can call them a,
// b and c.
func (w *Schedule) Shuffled() []*world.Node {
	ns := append([]*world.Node(nil), w.Nodes...)
	w.RNG.Shuffle(len(ns), func(i, j int) { ns[i], ns[j] = ns[j], ns[i] })
	return ns
}

// Wipe restarts a node without its memory, or with an old one.
func (f *faults) Wipe(n *world.Node, old bool) {
	n.Crash()
	if old {
		n.Revert()
	} else {
		n.Forget()
	}
	n.Restart()
}

// Miss takes some nodes down permanently.
func (f *faults) Miss(nodes int) {
	for _, n := range f.w.Shuffled()[:nodes] {
		n.Gone = true
		n.Crash()
		f.missing++
	}
}

// Shuttle has one process reach two nodes only for a while, one of which then
// loses its data or comes back with an old one.
func (f *faults) Shuttle() {
	w := f.w
	if f.w.Draining {
		return
	}
	ns := f.w.Shuffled()
	p := w.Procs[w.RNG.IntN(len(w.Procs))]
	l := p.To(ns[2])
	l.Cut(f.Directions()...)
	ns[0].Save()
	w.At(w.Around(w.TTL), func() {
		switch w.RNG.IntN(3) {
		case 0:
			f.Bounce(ns[0], w.Around(w.NodeTimeout), (*world.Node).Forget)
		case 1:
			f.Bounce(ns[0], w.Around(w.NodeTimeout), (*world.Node).Revert)
		default:
			p.Pause()
			w.At(w.Around(2*w.TTL), p.Resume)
		}
		w.At(w.Around(w.TTL), func() { l.Heal(w.RNG.IntN(2) == 0) })
	})
}

// HarmHolders harms n holders, one after the other. Each time a process cannot
// reach one of the nodes, and so holds with the votes of the others. While it
// holds, one of these loses its data, comes back with an old memory, hangs, or
// has its clock jump; or the process stands still. Often the process cannot
// reach that node afterwards, so that another claim may come there first.
func (f *faults) HarmHolders(n int) {
	w := f.w
	for range n {
		p, ns := w.Procs[w.RNG.IntN(len(w.Procs))], f.w.Shuffled()
		t, harmed, away := p.Parts[w.RNG.IntN(len(p.Parts))], ns[0], ns[len(ns)-1]
		w.Then(w.Around(w.TTL/4), func() {
			harmed.Save()
			p.To(away).Cut(f.Directions()...)
		})
		soon := w.Around([...]time.Duration{4 * w.Delay, w.NodeTimeout, w.TTL / 2}[w.RNG.IntN(3)])
		w.Once(world.Holds(t), w.TTL, soon, func() {
			f.harm(p, harmed)
			if w.RNG.IntN(2) == 0 {
				p.To(harmed).Cut(f.Directions()...)
			}
		})
		w.Then(w.Around(w.NodeTimeout), func() { p.To(away).Heal(w.RNG.IntN(2) == 0) })
		w.Then(f.span(), func() { p.To(harmed).Heal(w.RNG.IntN(2) == 0) })
	}
}

// harm is what happens to a node that a holder needs, or to the holder.
func (f *faults) harm(p *world.Proc, n *world.Node) {
	w, d := f.w, f.span()
	if n.Down {
		return
	}
	switch w.RNG.IntN(7) {
	case 0, 1:
		f.Wipe(n, false)
	case 2:
		f.Wipe(n, true)
	case 3:
		n.Pause()
		w.At(d, n.Resume)
	case 4:
		f.leapClock(n, d)
	case 5:
		if !w.Record { // as in randomFault
			p.Sleep(d, w.RNG.IntN(4) > 0)
		}
	case 6:
		p.Pause()
		w.At(d, p.Resume)
	}
}

// WallsApart has the wall clocks of the processes be behind the true time, each
// by more.
func (f *faults) WallsApart() {
	for i, p := range f.w.Procs {
		p.Off = -time.Duration(i) * f.w.Skew / time.Duration(2*len(f.w.Procs))
		p.Adjust()
	}
}

// EvictAtTimes has operators evict n times.
func (f *faults) EvictAtTimes(n int) {
	w := f.w
	for range n {
		w.At(w.Around(w.Length/2), func() {
			of := w.Checks.Of[w.RNG.IntN(len(w.Checks.Of))].holders
			if len(of) > 0 && !f.w.Draining {
				f.evict(of[w.RNG.IntN(len(of))], f.w.Shuffled()[:1+w.RNG.IntN(len(w.Nodes))], 8)
			}
		})
	}
}

// evict has an operator ask some nodes to end a hold, and again while it lasts.
// Where nothing fails, the word of a quorum ends it.
func (f *faults) evict(a *world.Attempt, nodes []*world.Node, times int) {
	w, by := f.w, uint32(0) // the words of two operators, or of two times, are not one
	for _, n := range nodes {
		if n.Evict(a) {
			by |= 1 << n.Index
		}
	}
	w.At(w.Around(2*w.Slowest()), func() {
		switch {
		case !a.InForce() || f.w.Draining:
		case times > 0:
			f.evict(a, nodes, times-1)
		case w.Clean && a.Claim.State.Sets.Met(by):
			w.Fail("evicted", "%v holds on against the word of a quorum", a)
		}
	})
}

// setBack returns by how much the clock of a node has been set back at most.
func (f *faults) setBack() (most time.Duration) {
	for _, n := range f.w.Nodes {
		most = max(most, n.Clock.SetBack)
	}
	return most
}

// stop ends the faults: what is down comes up, and every waiter is to be
// served, but no participant starts again.
func (f *faults) stop() {
	w := f.w
	w.Log("faults stop")
	f.w.Draining = true
	w.ForgetSteps()
	for _, n := range w.Nodes {
		n.Clock.SetRight()
		if n.Data(0).Forged(n.Millis()) { // its operator learns of it and empties it
			n.Forget()
		}
		n.Slow = 1
		n.Refuses(false, false)
		n.Resume()
		if n.Down && !n.Gone {
			n.Restart()
		}
	}
	w.Limit = w.Limit.Add(f.setBack()) // what was stored before ends so much later
	w.Operators.recordAgain()
	w.Operators.exchangesEnd()
	for _, p := range w.Procs {
		p.Off = 0
		p.Adjust()
		p.Resume()
		p.Restart()
		for _, l := range p.Links {
			l.PushCut = false
			l.Heal(w.RNG.IntN(2) == 0)
		}
		for _, a := range p.Parts {
			a.Drain()
		}
	}
	if w.Record {
		w.lastly()
	}
}
