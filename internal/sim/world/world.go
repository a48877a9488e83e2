package world

import (
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
)

// The world of one schedule: its nodes and processes, what they share, and how
// an event reaches them.

// World is one schedule being played.
type World struct {
	course.Setting
	course.Course
	Decisions    decisions
	coroutines   coroutines
	Draining     bool // faults have stopped, and no participant starts another acquisition
	LateMessages bool // a break leaves messages behind that arrive late
	Nodes        []*Node
	Procs        []*Proc
	Queue        course.Queue[Event]

	Listed    map[string]bool // names that all nodes had at first; see repair.go
	Undecided map[string]bool // those whose registers no run has decided
	Held      map[string]bool // those that a run is deciding

	registerOps int
	LastRead    course.Moment // then the schedule is over at the earliest
	Limit       course.Moment // when every waiter must have been served

	Exchangers []*exchanger
	Exchanging *exchanger // the last one that has begun
	Stepped    func()     // a node has carried out a step of its set's register

	Taken   [protocol.Residues]int // claims per residue
	Judge   Judge
	Wire    Network // nil, or the messages are delivered as a trace says
	Manual  bool    // of a trace: everything waits, and so do the timers of claims
	Repairs bool    // of a trace: each process repairs each node, as in production
	names   Names   // of what is recorded on the tape
}

// kind is what an event is.
type kind uint8

const (
	EvRequest kind = iota // a request reaches its node
	EvLate                // a request that its sender gave up reaches the node
	EvAnswer              // an answer reaches its process
	evFail                // a process learns that a request will not be answered
	evPush                // a push reaches its process
	EvTimer               // a claim's Wake
	EvUp                  // a link is up: the claims of the process get that event
	EvDown                // a link is down: likewise
	evProc                // fn concerns a process, and waits while that is stopped
	evFunc                // fn concerns the world
)

// Event is something that happens at a moment; of two at the same moment the
// one that was scheduled first goes first.
type Event struct {
	At   course.Moment
	Kind kind
	Gen  uint32 // of the process: its life
	Proc *Proc
	M    *Message
	Att  *Attempt
	fn   func()
}

// Judge hears what happens, and fails the schedule that breaks a promise.
type Judge interface {
	Began(a *Attempt)
	Worked(a *Attempt) // after each event of a claim
	Changed(a *Attempt, was lease.Phase)
	Gone(a *Attempt) // with its process
	Entered(c *Caller)
	Fenced(lock int, fence protocol.Ticket) // a node has this fence
	OpBegins(i *RegisterOp)
	OpSettled(i *RegisterOp)
	Lost()            // a node has lost data, or its clock has jumped
	CaughtUp(n *Node) // it is marked so
}

// Network is that of a world that a trace plays.
type Network interface {
	Take(e Event) // holds it back, or lets it go
	Claim(t *Participant) (protocol.ID, *lease.Deferral)
	Answered(e Event, a protocol.Answer)
	Changed(a *Attempt)
	Say(format string, args ...any)
}

// NewWorld makes one that judge holds to its promises.
func NewWorld(s course.Setting, r *rand.Rand, trace io.Writer, judge Judge) *World {
	w := &World{Setting: s, LateMessages: true, Judge: judge,
		Course: course.Course{RNG: r, Now: course.Moment(time.Second), Trace: trace}}
	w.Push = func(at course.Moment, do func()) { w.Queue.Push(at, Event{At: at, Kind: evFunc, fn: do}) }
	w.Decisions = decisions{w: w}
	w.Listed, w.Undecided, w.Held = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range s.Names {
		w.Listed[NameOf(i)] = true
	}
	for i := range s.Nodes {
		w.Nodes = append(w.Nodes, newNode(w, i))
	}
	for i := range s.Procs {
		w.Procs = append(w.Procs, NewProc(w, i))
	}
	if w.Trace != nil {
		w.Log("%d nodes, %d processes, capacity %d, weights %v, ttl %v, skew %v, guard %v", s.Nodes, s.Procs,
			s.Capacity, s.Weights, s.TTL, s.Skew, s.Guard)
	}
	return w
}

func (w *World) Dispatch(e Event) {
	w.tape(e)
	switch e.Kind {
	case evFunc:
		e.fn()
	case EvRequest, EvLate:
		w.request(e)
	default:
		e.Proc.take(e)
	}
}

// send has a message or a timer be there at its moment, or when the trace says.
func (w *World) send(e Event) {
	switch {
	case w.Wire != nil:
		w.Wire.Take(e)
		return
	case w.Tape != nil && (e.M == nil || e.M.about != repairs):
		w.names.Of(e)
	}
	w.Queue.Push(e.At, e)
}

// over: nothing more is to be done.
func (w *World) over() bool { return w.Draining && w.Idle() && w.Now >= w.LastRead }

// Exchanges reports whether an exchange is under way.
func (w *World) Exchanges() bool { return slices.ContainsFunc(w.Exchangers, (*exchanger).GoesOn) }

// Spare is how many nodes may be missing.
func (w *World) Spare() int { return (len(w.Nodes) - 1) / 2 }

// Idle: no participant holds or wants anything, and no nodes are being
// exchanged.
func (w *World) Idle() bool {
	if w.Exchanges() {
		return false
	}
	for a := range w.Participants() {
		if !a.Idle() {
			return false
		}
	}
	return true
}

func (w *World) NewID() protocol.ID {
	var id protocol.ID
	a, b := w.RNG.Uint64(), w.RNG.Uint64()
	for i := range 8 {
		id[i], id[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
	id[15] = byte(int(id[15]) % w.Residues)
	w.Taken[id.Residue()]++
	return id
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
	case e.Kind == EvRequest && e.M.Gen != l.Gen: // its ghosts are on their way
	case n.Down || n.Unmarked && e.Kind == EvLate:
	case n.Paused:
		n.inbox = append(n.inbox, e)
	default:
		m := e.M
		var ans protocol.Answer
		switch {
		case m.about != claims:
			ans = n.attend(m)
		case !n.Refuse && !n.busy:
			ans = n.handle(m, e.Kind == EvLate)
			if w.Wire != nil {
				w.Wire.Answered(e, ans)
			}
		}
		if e.Kind == EvRequest {
			m.ans, m.refused, m.forNow, m.leapt = ans, n.Refuse || n.busy, n.busy, n.Clock.Wrong
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
