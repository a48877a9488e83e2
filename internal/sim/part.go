package sim

import (
	"container/list"
	"fmt"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// participant acquires, holds and releases, over and over.
type participant struct {
	proc   *proc
	name   string
	no     int // within its process
	lock   int // the name that it claims: see node.data
	weight uint64
	auto   bool // else a generator says when
	try    bool
	waits  bool          // for the process to have nodes
	queued *list.Element // for a place of the intake; nil: it does not wait for one
	count  int
	att    *attempt // nil: idle
	value  *value   // what callers share under its claims; nil: it acts by itself

	keeps    bool          // it does not let go by itself
	puts     bool          // it only puts, when a generator says so
	register *process.Name // it acquires the name of the register that decides which configuration follows; nil: another name
	succeeds *change.Succession

	run *lease.Run // it acquires only for that; nil: nothing is under way
	ran func()     // is called when that is over
}

func newParticipant(p *proc, i int) *participant {
	w := p.w
	t := &participant{
		proc: p, no: i, lock: i % max(1, w.locks), name: fmt.Sprintf("p%s%c", p.name, 'a'+i),
		weight: w.weights[w.rng.IntN(len(w.weights))],
	}
	if w.callers > 0 {
		t.value = newValue(t)
	}
	return t
}

// shared is what all claims of the process share that claim this name.
func (t *participant) shared() *process.Name {
	if t.register != nil {
		return t.register
	}
	if t.proc.w.oneClock {
		return t.proc.names[0]
	}
	return t.proc.names[t.lock]
}

// label is the name in traces: the process's, and a number for all but the
// first of it.
func (t *participant) label() string {
	if t.no == 0 {
		return t.proc.label
	}
	return t.proc.label + strconv.Itoa(t.no+1)
}

func (t *participant) idle() bool {
	return t.att == nil && !t.waits && t.queued == nil && (t.value == nil || t.value.idle())
}

// vanish: the process has gone.
func (t *participant) vanish() {
	if t.att != nil {
		t.proc.w.checks.gone(t.att)
	}
	t.att, t.run, t.ran, t.waits, t.queued = nil, nil, nil, false, nil
	if t.value != nil {
		auto := t.value.callers[0].auto
		t.value = newValue(t)
		if t.proc.w.wire != nil {
			t.value.rename()
		}
		for _, c := range t.value.callers {
			c.auto = auto
		}
	}
}

// loop starts to acquire over and over.
func (t *participant) loop() {
	if t.value != nil {
		t.value.loop()
		return
	}
	t.auto = true
	t.idleFor(t.proc.w.around(t.proc.w.think))
}

func (t *participant) idleFor(d time.Duration) {
	if t.value != nil {
		return
	}
	if t.auto && !t.proc.w.draining {
		t.proc.later(d, func() {
			if w := t.proc.w; !w.draining && t.att == nil {
				t.weight = w.weights[w.rng.IntN(len(w.weights))]
				t.acquire(w.tryEvery > 0 && w.rng.IntN(w.tryEvery) == 0)
			}
		})
	}
}

// drain: hold no longer than usual, and start no more.
func (t *participant) drain() {
	if t.value != nil {
		t.value.drain()
		return
	}
	if t.att != nil && t.att.phase == lease.Holding && !(t.proc.w.record && t.lock == 0) {
		t.releaseLater()
	}
}

// acquire makes an attempt.
func (t *participant) acquire(try bool) {
	p, w := t.proc, t.proc.w
	if t.att != nil || t.queued != nil || !p.alive || p.closed {
		return
	}
	t.try = try
	if t.waits = p.waits(try) && !p.outOfSet(); p.waits(try) {
		return
	}
	if w.places > 0 && !p.intake.Take() {
		t.queued = p.intake.Wait(t)
		return
	}
	t.begin()
}

// begin makes an attempt, which may begin.
func (t *participant) begin() {
	p, w, try := t.proc, t.proc.w, t.try
	t.count++
	if w.rng.IntN(16) == 0 && w.wire == nil {
		p.adjust()
	}
	id, muted := w.newID(), false
	later := t.leftOut(id)
	if w.wire != nil {
		id, later = w.wire.start(t)
	}
	a := &attempt{part: t, place: w.places > 0, no: t.count, began: w.now, timer: never, rounds: 1, wanted: make([]protocol.Request, len(w.nodes)), Attempt: new(process.Attempt)}
	if !w.clean && w.wire == nil && (t.auto || t.value != nil) && w.rng.IntN(16) == 0 {
		a.mute, muted = true, true
	}
	if t.att = a; t.value != nil {
		t.value.pending = a
	}
	w.stats.Claims++
	begin := process.Begin{
		Terms: protocol.Terms{ID: id, Weight: t.weight, Capacity: w.capacity, TTL: p.lease(), Counting: w.counting, Notify: true},
		Name:  string(id[9:10]), Try: try, ShortHold: true, NoRenewal: muted, NodeTimeout: p.w.nodeTimeout, Drift: w.margin(p.w.ttl),
		Rules: w.rules, Defer: later,
	}
	if t.register != nil {
		begin.Weight, begin.Capacity, begin.Counting, begin.Succession = 1, 1, false, true
		begin.Name, begin.TTL, begin.NodeTimeout = t.register.Name, t.succeeds.TTL, t.succeeds.NodeTimeout
	}
	g := p.client.Group()
	for i := range g.Nodes {
		p.client.See(&begin, i, p.link(i).state())
	}
	d := p.client.Start(p.now(), a.Attempt, t.shared(), &begin)
	if w.tape != nil {
		w.tape.claim(t, id, d)
		defer func() {
			if muted {
				w.tape.note("mute %s", t.label())
			}
		}()
		defer w.tape.within()()
	}
	a.first, a.ticket = a.Ticket(), a.Ticket()
	w.checks.began(a)
	if w.trace != nil {
		w.log("%v: start T0=%s weight %d try=%v", a, ticketName(a.ticket), t.weight, try)
	}
	a.after()
	if w.cancelEvery > 0 && t.auto && w.rng.IntN(w.cancelEvery) == 0 {
		p.later(w.around(w.hold), func() {
			if t.att == a && a.phase < lease.Holding {
				t.release()
			}
		})
	}
}

// release withdraws the claim, held or not.
func (t *participant) release() {
	t.waits = false
	if t.queued != nil {
		t.proc.intake.GiveUp(t.queued)
		t.queued = nil
	}
	if a := t.att; a != nil {
		t.proc.w.tape.note("leave %s", t.label())
		a.event(func() { a.Leave(t.proc.local(t.proc.w.now)) })
	}
}

// whim is what else holders do: they renew now, or give a part back.
func (t *participant) whim(a *attempt) {
	w := t.proc.w
	if w.rng.IntN(8) > 0 {
		return
	}
	weight := w.weights[w.rng.IntN(len(w.weights))]
	t.proc.later(w.around(w.hold)/2, func() {
		a.before()
		if weight < a.Weight && a.Phase() == lease.Holding {
			w.log("%v: weighs %d from now on", a, weight)
			w.tape.note("shrink %s %d", t.label(), weight)
			a.Shrink(a.local(), weight)
		} else if w.maxHold == 0 { // a renewal that a caller asks for goes past WithMaxHold
			w.tape.note("renew %s", t.label())
			a.Renew(a.local())
		}
		a.after()
	})
}

func (t *participant) releaseLater() {
	a := t.att
	t.proc.later(t.proc.w.around(t.proc.w.hold), func() {
		if t.att == a {
			t.release()
		}
	})
}

// holds is a condition for once: t may act as holder.
func holds(t *participant) func() bool {
	return func() bool { return t.att != nil && t.att.valid() }
}

// leftOut returns which nodes a claim asks only later, and when: in one of two
// cases none, in one of four those that lease.Fanout says (nil), else any
// that leave a quorum, drawn from the id.
func (t *participant) leftOut(id protocol.ID) *process.Deferral {
	w := t.proc.w
	switch {
	case !w.shortHold || id[5]%2 == 0:
		return &process.Deferral{}
	case id[5]%4 == 1:
		return nil
	}
	most, nodes := w.spare(), uint32(0)
	for k := range len(w.nodes) {
		if i := (int(id[6]) + k) % len(w.nodes); most > 0 && id[7]>>(k%8)&1 == 0 {
			nodes |= 1 << i
			most--
		}
	}
	return &process.Deferral{Nodes: nodes, After: w.nodeTimeout * time.Duration(id[8]) / 1024}
}

// insists has t claim again after an error, until it holds.
func (t *participant) insists() {
	w := t.proc.w
	if t.att == nil && !t.waits {
		t.acquire(false)
	}
	if !holds(t)() && !w.draining {
		w.at(w.nodeTimeout, t.insists)
	}
}
