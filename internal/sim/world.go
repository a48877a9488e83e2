package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// world is one schedule being played.
type world struct {
	setting
	rng   *rand.Rand
	now   moment
	queue queue
	nodes []*node
	procs []*proc
	check checks
	stats Stats
	rival *rival // may be nil

	listed    map[string]bool // names that all nodes had at first, see repair.go
	undecided map[string]bool // those whose registers no run has decided
	held      map[string]bool // those that a run is deciding

	decided     map[nodeset.Stamp]*nodeset.Configuration // see operator.go
	forgotten   map[nodeset.Stamp]bool                   // see forgetDecisions
	stepped     func()                                   // a node has carried out a step of its set's register
	told        nodeset.Stamp                            // in a trace: the last configuration of which it has said that it was decided
	added       int                                      // members so far
	exchangers  []*exchanger
	exchanging  *exchanger // the last one that has begun
	ledger      ledger     // of the record
	permits     number
	registerOps int
	lastRead    moment
	limit       moment // when every waiter must have been served

	steps     []step // what a generator wants done, one after the other
	armed     bool   // the first step only waits for its moment
	stepLimit moment // when the first step is done even though its condition does not hold

	draining     bool                   // faults have stopped, and no participant starts another acquisition
	missing      int                    // nodes that stay down from the start
	excused      bool                   // a jump could not be noticed: two may hold
	lateMessages bool                   // a break leaves messages behind that arrive late
	taken        [protocol.Residues]int // claims per residue
	trace        io.Writer
	wire         *wire // nil, or the messages are delivered as a trace says
	tape         *tape // nil, or what happens is recorded as a trace
	broken       *Violation
}

// maxEvents is far above what any honest schedule takes.
const maxEvents = 500_000

// Violation is what a schedule showed.
type Violation struct {
	Kind string // as in the package's documentation; or panic
	What string
	At   time.Duration
}

func (v *Violation) String() string { return fmt.Sprintf("%s at %v: %s", v.Kind, v.At, v.What) }

func newWorld(s setting, r *rand.Rand, trace io.Writer) *world {
	w := &world{setting: s, rng: r, now: moment(time.Second), trace: trace, lateMessages: true, check: newChecks(s.locks)}
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
		w.check.always(w)
		w.step()
	}
	if w.broken == nil {
		w.check.end(w)
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

// setBack returns by how much the clock of a node has been set back at most.
func (w *world) setBack() (most time.Duration) {
	for _, n := range w.nodes {
		most = max(most, n.setBack)
	}
	return most
}

// at does something to the world later.
func (w *world) at(d time.Duration, fn func()) {
	w.queue.push(event{at: w.now.add(d), kind: evFunc, fn: fn})
}

// stop ends the faults: what is down comes up, and every waiter is to be
// served, but no participant starts again.
func (w *world) stop() {
	w.log("faults stop")
	w.draining, w.steps = true, nil
	for _, n := range w.nodes {
		n.setRight()
		if n.model.Forged(n.millis(w.now)) { // its operator learns of it and empties it
			n.forget()
		}
		n.slow = 1
		n.refuses(false)
		n.resume()
		if n.down && !n.gone {
			n.restart()
		}
	}
	w.limit = w.limit.add(w.setBack()) // what was stored before ends so much later
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

// over: nothing more is to be done.
func (w *world) over() bool { return w.draining && w.idle() && w.now >= w.lastRead }

// idle: no participant holds or wants anything, and no nodes are being
// exchanged.
func (w *world) idle() bool {
	if w.exchanges() {
		return false
	}
	for _, p := range w.procs {
		for _, a := range p.parts {
			if !a.idle() {
				return false
			}
		}
	}
	return true
}

func (w *world) waiting() string {
	s := "not served"
	if w.exchanges() {
		s = "an exchange is not over"
	}
	for _, p := range w.procs {
		for _, a := range p.parts {
			if !a.idle() {
				s += fmt.Sprintf("; %v (%v)", a.att, phaseName(a.att.Phase()))
			}
		}
	}
	return s
}

func (w *world) fail(kind, format string, args ...any) {
	if w.excused && (kind == "capacity" || kind == "token") {
		return
	}
	if w.broken == nil {
		w.broken = &Violation{kind, fmt.Sprintf(format, args...), time.Duration(w.now)}
		w.log("VIOLATION %v", w.broken)
	}
}

// log writes a line of the trace. Callers on the hot path look at w.trace
// first.
func (w *world) log(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%12.6f  %s\n", float64(w.now)/1e9, fmt.Sprintf(format, args...))
	}
}

// around draws a time between half and one and a half of d, rarely much longer.
func (w *world) around(d time.Duration) time.Duration {
	t := d/2 + time.Duration(w.rng.Int64N(int64(d)+1))
	if w.rng.IntN(20) == 0 {
		t *= 3
	}
	return t
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
