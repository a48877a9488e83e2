package world

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
	"github.com/quorate/quorate/internal/sim/course"
)

// This file owns the world of one schedule: its nodes and processes, what they
// share, and how it is played.

// World is one schedule being played.
type World struct {
	course.Setting
	course.Course
	faults
	decisions
	operators
	checks
	Nodes []*Node
	Procs []*Proc
	queue course.Queue[Event]
	Rival *Rival // may be nil

	listed    map[string]bool // names that all nodes had at first, see repair.go
	Undecided map[string]bool // those whose registers no run has decided
	Held      map[string]bool // those that a run is deciding

	Ledger      ledger // of the record
	Permits     number
	registerOps int
	lastRead    course.Moment
	limit       course.Moment // when every waiter must have been served

	taken [protocol.Residues]int // claims per residue
	Wire  *Wire                  // nil, or the messages are delivered as a trace says
	names names                  // of what is recorded on the tape
}

// maxEvents is far above what any honest schedule takes.
const maxEvents = 500_000

func NewWorld(s course.Setting, r *rand.Rand, trace io.Writer) *World {
	w := &World{Setting: s, Course: course.Course{RNG: r, Now: course.Moment(time.Second), Trace: trace}}
	w.Push = func(at course.Moment, do func()) { w.queue.Push(at, Event{At: at, Kind: evFunc, fn: do}) }
	w.faults, w.decisions, w.operators, w.checks = faults{w: w, LateMessages: true}, decisions{w: w}, operators{w: w}, newChecks(w)
	w.listed, w.Undecided, w.Held = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range s.Names {
		w.listed[NameOf(i)] = true
	}
	for i := range s.Nodes {
		w.Nodes = append(w.Nodes, newNode(w, i))
	}
	for i := range s.Procs {
		w.Procs = append(w.Procs, NewProc(w, i))
	}
	if w.Trace != nil {
		w.Log("%d nodes, %d processes, capacity %d, weights %v, ttl %v, skew %v, guard %v", s.Nodes, s.Procs, s.Capacity, s.Weights, s.TTL, s.Skew, s.Guard)
	}
	return w
}

// Play runs the schedule until nothing more happens.
func (w *World) Play() (v *course.Violation) {
	defer func() {
		if p := recover(); p != nil {
			w.Fail("panic", "%v\n%s", p, debug.Stack())
			v = w.Broken
		}
	}()
	if w.Tape != nil {
		w.setup()
	}
	if w.Record {
		for _, p := range w.Procs {
			p.reads()
		}
	}
	for _, p := range w.Procs {
		for _, l := range p.Links {
			if l.Up {
				l.Ask(Hello, 0)
			}
		}
		p.Begins()
	}
	w.limit = w.Now.Add(w.Length + w.bound())
	w.At(w.Length, w.stop)
	w.Step()
	for !w.queue.Empty() && w.Broken == nil {
		e := w.queue.Pop()
		w.Now = e.At
		w.Stats.Events++
		if w.Stats.Events > maxEvents {
			w.Fail("busy", "more than %d events", maxEvents)
			break
		}
		if e.At > w.limit {
			w.dismiss()
		}
		if e.At > w.limit && !w.idle() {
			w.Fail("stuck", "%s", w.waiting())
			break
		}
		w.dispatch(e)
		w.checks.always()
		w.Step()
	}
	if w.Broken == nil {
		w.checks.end()
	}
	return w.Broken
}

// bound is how long after the faults the last waiter may be served: nodes
// recover, leases of the dead end, and then every waiter has its turn.
func (w *World) bound() time.Duration {
	each := 4*w.Hold + 4*w.NodeTimeout + w.TTL/3
	if w.Record {
		each += 10 * w.TTL // an open that cannot find out, and a put that cannot reach a majority, are given up after a while
	}
	wait := 2*w.Guard + 4*w.TTL
	if w.Rival != nil {
		wait += w.Rival.Lease + 2*w.TTL // its keys may stay, or come late
	}
	return wait + time.Duration(len(w.Procs)*w.Parts*max(1, w.Callers)+2)*each
}

func (w *World) dispatch(e Event) {
	w.tape(e)
	switch e.Kind {
	case evFunc:
		e.fn()
	case evRequest, EvLate:
		w.request(e)
	default:
		e.Proc.take(e)
	}
}

// send has a message or a timer be there at its moment, or when the trace says.
func (w *World) send(e Event) {
	switch {
	case w.Wire != nil:
		w.Wire.take(e)
		return
	case w.Tape != nil && (e.M == nil || e.M.about != repairs):
		w.names.Of(e)
	}
	w.queue.Push(e.At, e)
}

// over: nothing more is to be done.
func (w *World) over() bool { return w.Draining && w.idle() && w.Now >= w.lastRead }

// idle: no participant holds or wants anything, and no nodes are being
// exchanged.
func (w *World) idle() bool {
	if w.Exchanges() {
		return false
	}
	for a := range w.Participants() {
		if !a.idle() {
			return false
		}
	}
	return true
}

func (w *World) waiting() string {
	s := "not served"
	if w.Exchanges() {
		s = "an exchange is not over"
	}
	for a := range w.Participants() {
		if !a.idle() {
			s += fmt.Sprintf("; %v (%v)", a.Att, phaseName(a.Att.Phase()))
		}
	}
	return s
}

func (w *World) NewID() protocol.ID {
	var id protocol.ID
	a, b := w.RNG.Uint64(), w.RNG.Uint64()
	for i := range 8 {
		id[i], id[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
	id[15] = byte(int(id[15]) % w.Residues)
	w.taken[id.Residue()]++
	return id
}

func phaseName(p lease.Phase) string {
	return [...]string{"joining", "waiting", "HOLDING", "LOST", "left", "taken", "no quorum", "rejected", "lapsed", "too heavy"}[p]
}

// say is a line of the output of a trace.
func (w *World) say(format string, args ...any) {
	w.Log(format, args...)
	if w.Wire != nil {
		w.Wire.Say(format, args...)
	}
}

// owner finds the process that a node knows by its name.
func (w *World) owner(name string) *Proc {
	i, err := strconv.Atoi(name)
	if err != nil {
		panic(err)
	}
	return w.Procs[i]
}

// request has a request reach its node.
func (w *World) request(e Event) {
	l, n := e.M.Link, e.M.Link.Node
	switch {
	case e.Kind == evRequest && e.M.Gen != l.Gen: // its ghosts are on their way
	case n.Down || n.unmarked && e.Kind == EvLate:
	case n.Paused:
		n.inbox = append(n.inbox, e)
	default:
		m := e.M
		var ans protocol.Answer
		switch {
		case m.about != claims:
			ans = n.attend(m)
		case !n.refuse && !n.busy:
			ans = n.handle(m, e.Kind == EvLate)
			if w.Wire != nil && w.Wire.SayAnswers {
				w.Wire.Say("%v: %s", w.Wire.Names.Of(e), answerName(m.Req, ans))
			}
		}
		if e.Kind == evRequest {
			m.ans, m.refused, m.forNow, m.leapt = ans, n.refuse || n.busy, n.busy, n.Wrong
			l.forward(Answers, m)
		}
	}
}

// Participants are those of all processes.
func (w *World) Participants() iter.Seq[*Participant] {
	return func(yield func(*Participant) bool) {
		for _, p := range w.Procs {
			for _, t := range p.Parts {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// AllLoop has all participants acquire over and over.
func (w *World) AllLoop() {
	for t := range w.Participants() {
		t.Loop()
	}
}

// lastly reads once more when everything is well again: that must succeed.
func (w *World) lastly() {
	caughtUp := w.numbers(func(n *Node) bool { return n.Model.CaughtUp() && !n.Gone && !n.unsettled() })
	// One node gone for good and another without its data: it cannot be known.
	if !w.sets().Attested(caughtUp) {
		return
	}
	w.lastRead = w.Now.Add(2*w.Guard + 10*w.TTL)
	// A run that has begun and come to nothing leaves it open what a minority
	// has, and so does a node that goes when one has found it all: the next one
	// decides.
	w.At(w.Guard+w.TTL/2, func() { w.Procs[0].Parts[0].Acquire(false) })
	w.At(w.Guard+4*w.TTL, func() {
		w.readLast(func() {
			w.Procs[0].Parts[0].Acquire(false)
			w.At(3*w.TTL, func() { w.readLast(nil) })
		})
	})
}

// readLast reads; unsettled is called when a run is to decide first, if one
// still may.
func (w *World) readLast(unsettled func()) {
	w.Procs[0].StartRegisterOp(nil, lease.RegisterOp{Op: protocol.OpRead}, func(i *RegisterOp, ok bool) {
		open := i.Outcome() == lease.Inconclusive
		switch {
		case ok || w.Ledger.void || w.Procs[0].blocked() || open && !w.idle(): // it is that run's to decide
		case open && unsettled != nil:
			unsettled()
		default:
			w.Fail("stuck", "%v: cannot be read", i)
		}
	})
}

// Slowest is how long a hand-over may take when nothing fails.
func (w *World) Slowest() time.Duration {
	if w.Permits.Most > 0 {
		return w.TTL // a claim that is blocked by counting alone gets no push, and asks ever more rarely
	}
	return max(40*(w.Delay+w.Jitter+w.Tail), 50*time.Millisecond)
}

// longestWait is how long a turn of so many other values may take, one after
// the other: one that has begun, hand-overs for a 256th of the ttl, and one
// more turn.
func (w *World) longestWait(values int) time.Duration {
	one := 5 * w.Hold // around draws four and a half at most
	if w.Reading > 0 {
		one *= 2 // and a writer that becomes a reader holds twice
	}
	each := one + w.TTL/256 + one + w.Slowest()
	if w.Jitter > 0 {
		each += w.TTL / 3 // of two pushes the older one may come later: then a beat tells which claims wait
	}
	return time.Duration(values) * each
}
