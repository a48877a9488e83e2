package sim

import (
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns the world of one schedule: its nodes and processes, what they
// share, and how it is played.

// world is one schedule being played.
type world struct {
	setting
	course
	faults
	decisions
	operators
	checks
	nodes []*node
	procs []*proc
	stats Stats
	rival *rival // may be nil

	listed    map[string]bool // names that all nodes had at first, see repair.go
	undecided map[string]bool // those whose registers no run has decided
	held      map[string]bool // those that a run is deciding

	ledger      ledger // of the record
	permits     number
	registerOps int
	lastRead    moment
	limit       moment // when every waiter must have been served

	taken [protocol.Residues]int // claims per residue
	wire  *wire                  // nil, or the messages are delivered as a trace says
	tape  *tape                  // nil, or what happens is recorded as a trace
}

// maxEvents is far above what any honest schedule takes.
const maxEvents = 500_000

func newWorld(s setting, r *rand.Rand, trace io.Writer) *world {
	w := &world{setting: s, course: course{rng: r, now: moment(time.Second), trace: trace}}
	w.faults, w.decisions, w.operators, w.checks = faults{w: w, lateMessages: true}, decisions{w: w}, operators{w: w}, newChecks(w)
	w.listed, w.undecided, w.held = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range s.names {
		w.listed[nameOf(i)] = true
	}
	for i := range s.nodes {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	for i := range s.procs {
		w.procs = append(w.procs, newProc(w, i))
	}
	if w.trace != nil {
		w.log("%d nodes, %d processes, capacity %d, weights %v, ttl %v, skew %v, guard %v", s.nodes, s.procs, s.capacity, s.weights, s.ttl, s.skew, s.guard)
	}
	return w
}

// play runs the schedule until nothing more happens.
func (w *world) play() (v *Violation) {
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic", "%v\n%s", p, debug.Stack())
			v = w.broken
		}
	}()
	if w.tape != nil {
		w.tape.setup()
	}
	if w.record {
		for _, p := range w.procs {
			p.reads()
		}
	}
	for _, p := range w.procs {
		for _, l := range p.links {
			if l.up {
				l.ask(hello, 0)
			}
		}
		p.begins()
	}
	w.limit = w.now.add(w.length + w.bound())
	w.at(w.length, w.stop)
	w.step()
	for !w.queue.empty() && w.broken == nil {
		e := w.queue.pop()
		w.now = e.at
		w.stats.Events++
		if w.stats.Events > maxEvents {
			w.fail("busy", "more than %d events", maxEvents)
			break
		}
		if e.at > w.limit {
			w.dismiss()
		}
		if e.at > w.limit && !w.idle() {
			w.fail("stuck", "%s", w.waiting())
			break
		}
		w.dispatch(e)
		w.checks.always()
		w.step()
	}
	if w.broken == nil {
		w.checks.end()
	}
	return w.broken
}

// bound is how long after the faults the last waiter may be served: nodes
// recover, leases of the dead end, and then every waiter has its turn.
func (w *world) bound() time.Duration {
	each := 4*w.hold + 4*w.nodeTimeout + w.ttl/3
	if w.record {
		each += 10 * w.ttl // an open that cannot find out, and a put that cannot reach a majority, are given up after a while
	}
	wait := 2*w.guard + 4*w.ttl
	if w.rival != nil {
		wait += w.rival.lease + 2*w.ttl // its keys may stay, or come late
	}
	return wait + time.Duration(len(w.procs)*w.parts*max(1, w.callers)+2)*each
}

func (w *world) dispatch(e event) {
	w.tape.event(e)
	switch e.kind {
	case evFunc:
		e.fn()
	case evRequest, evLate:
		w.request(e)
	default:
		e.proc.take(e)
	}
}

// send has a message or a timer be there at its moment, or when the trace says.
func (w *world) send(e event) {
	switch {
	case w.wire != nil:
		w.wire.take(e)
		return
	case w.tape != nil && (e.m == nil || e.m.about != repairs):
		w.tape.names.of(e)
	}
	w.queue.push(e)
}

// over: nothing more is to be done.
func (w *world) over() bool { return w.draining && w.idle() && w.now >= w.lastRead }

// idle: no participant holds or wants anything, and no nodes are being
// exchanged.
func (w *world) idle() bool {
	if w.exchanges() {
		return false
	}
	for a := range w.participants() {
		if !a.idle() {
			return false
		}
	}
	return true
}

func (w *world) waiting() string {
	s := "not served"
	if w.exchanges() {
		s = "an exchange is not over"
	}
	for a := range w.participants() {
		if !a.idle() {
			s += fmt.Sprintf("; %v (%v)", a.att, phaseName(a.att.Phase()))
		}
	}
	return s
}

func (w *world) newID() protocol.ID {
	var id protocol.ID
	a, b := w.rng.Uint64(), w.rng.Uint64()
	for i := range 8 {
		id[i], id[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
	id[15] = byte(int(id[15]) % w.residues)
	w.taken[id.Residue()]++
	return id
}

func phaseName(p lease.Phase) string {
	return [...]string{"joining", "waiting", "HOLDING", "LOST", "left", "taken", "no quorum", "rejected", "lapsed", "too heavy"}[p]
}

// say is a line of the output of a trace.
func (w *world) say(format string, args ...any) {
	w.log(format, args...)
	if w.wire != nil {
		w.wire.say(format, args...)
	}
}

// owner finds the process that a node knows by its name.
func (w *world) owner(name string) *proc {
	i, err := strconv.Atoi(name)
	if err != nil {
		panic(err)
	}
	return w.procs[i]
}

// request has a request reach its node.
func (w *world) request(e event) {
	l, n := e.m.link, e.m.link.node
	switch {
	case e.kind == evRequest && e.m.gen != l.gen: // its ghosts are on their way
	case n.down || n.unmarked && e.kind == evLate:
	case n.paused:
		n.inbox = append(n.inbox, e)
	default:
		m := e.m
		var ans protocol.Answer
		switch {
		case m.about != claims:
			ans = n.attend(m)
		case !n.refuse && !n.busy:
			ans = n.handle(m, e.kind == evLate)
			if w.wire != nil && w.wire.sayAnswers {
				w.wire.say("%v: %s", w.wire.names.of(e), answerName(m.req, ans))
			}
		}
		if e.kind == evRequest {
			m.ans, m.refused, m.forNow, m.leapt = ans, n.refuse || n.busy, n.busy, n.wrong
			l.forward(answers, m)
		}
	}
}

// participants are those of all processes.
func (w *world) participants() iter.Seq[*participant] {
	return func(yield func(*participant) bool) {
		for _, p := range w.procs {
			for _, t := range p.parts {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// allLoop has all participants acquire over and over.
func (w *world) allLoop() {
	for t := range w.participants() {
		t.loop()
	}
}

// lastly reads once more when everything is well again: that must succeed.
func (w *world) lastly() {
	caughtUp := w.numbers(func(n *node) bool { return n.model.CaughtUp() && !n.gone && !n.unsettled() })
	// One node gone for good and another without its data: it cannot be known.
	if !w.sets().Attested(caughtUp) {
		return
	}
	w.lastRead = w.now.add(2*w.guard + 10*w.ttl)
	// A run that has begun and come to nothing leaves it open what a minority
	// has, and so does a node that goes when one has found it all: the next one
	// decides.
	w.at(w.guard+w.ttl/2, func() { w.procs[0].parts[0].acquire(false) })
	w.at(w.guard+4*w.ttl, func() {
		w.readLast(func() {
			w.procs[0].parts[0].acquire(false)
			w.at(3*w.ttl, func() { w.readLast(nil) })
		})
	})
}

// readLast reads; unsettled is called when a run is to decide first, if one
// still may.
func (w *world) readLast(unsettled func()) {
	w.procs[0].startRegisterOp(nil, lease.RegisterOp{Op: protocol.OpRead}, func(i *registerOp, ok bool) {
		open := i.Outcome() == lease.Inconclusive
		switch {
		case ok || w.ledger.void || w.procs[0].blocked() || open && !w.idle(): // it is that run's to decide
		case open && unsettled != nil:
			unsettled()
		default:
			w.fail("stuck", "%v: cannot be read", i)
		}
	})
}

// slowest is how long a hand-over may take when nothing fails.
func (w *world) slowest() time.Duration {
	if w.permits.most > 0 {
		return w.ttl // a claim that is blocked by counting alone gets no push, and asks ever more rarely
	}
	return max(40*(w.delay+w.jitter+w.tail), 50*time.Millisecond)
}

// longestWait is how long a turn of so many other values may take, one after
// the other: one that has begun, hand-overs for a 256th of the ttl, and one
// more turn.
func (w *world) longestWait(values int) time.Duration {
	one := 5 * w.hold // around draws four and a half at most
	if w.reading > 0 {
		one *= 2 // and a writer that becomes a reader holds twice
	}
	each := one + w.ttl/256 + one + w.slowest()
	if w.jitter > 0 {
		each += w.ttl / 3 // of two pushes the older one may come later: then a beat tells which claims wait
	}
	return time.Duration(values) * each
}
