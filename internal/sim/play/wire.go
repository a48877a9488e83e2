package play

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// Wire is the network of a world that a trace plays. A message arrives when the
// trace says, or at once where the trace holds nothing back. Chance has no part
// in it.
//
// Invariant: what is under way in one direction of a connection arrives in the
// order in which it was sent. Pushes have a connection of their own.
type Wire struct {
	World      *trial.Schedule
	Began      course.Moment // when the trace's time is zero
	Names      world.Names
	Flight     []world.Event  // what is under way, in the order in which it was sent
	Holds      []world.Parcel // patterns: what matches one of them waits for a command
	SayAnswers bool           // say what a node answers
	Over       bool           // messages call forth messages without end
	Lines      []string       // what the commands of one block have led to
	Seen       map[*world.Attempt]Glance
	Next       Start // what the next claim begins with
	Said       map[string]bool
	Does       map[string]string // what was last said of a caller
	distinct   uint64            // claims so far
}

// Start is what a claim begins with in addition to the settings.
type Start struct {
	ID    protocol.ID
	Fixed bool   // id is to be taken
	Later uint32 // the nodes that it asks later, a bit for each
	After time.Duration
}

// Glance is what was last said of a claim.
type Glance struct {
	Phase    lease.Phase
	Ticket   protocol.Ticket
	Deadline protocol.Time
}

func (x *Wire) Say(format string, args ...any) {
	x.Lines = append(x.Lines, fmt.Sprintf(format, args...))
}

// Claim returns what a claim begins with. Its id follows from the participant
// and the number of claims before it, so its residue is that number.
func (x *Wire) Claim(t *world.Participant) (protocol.ID, *lease.Deferral) {
	s := x.Next
	x.Next = Start{}
	if !s.Fixed {
		x.distinct++
		for i := range s.ID {
			s.ID[i] = byte(uint64(t.Label()[0])*31 + x.distinct*17 + uint64(i)*7)
		}
		s.ID[15] = byte(x.distinct % protocol.Residues)
	}
	return s.ID, &lease.Deferral{Nodes: s.Later, After: s.After}
}

// Take has a message wait until it is delivered.
func (x *Wire) Take(e world.Event) {
	x.Names.Of(e)
	switch {
	case e.Kind == world.EvTimer && !x.World.Manual:
		x.World.Queue.Push(e.At, e)
	case e.Kind != world.EvTimer: // a timer by hand needs no event; see tick
		x.Flight = append(x.Flight, e)
	}
}

// Answered says what a node has answered.
func (x *Wire) Answered(e world.Event, a protocol.Answer) {
	if x.SayAnswers {
		x.Say("%v: %s", x.Names.Of(e), world.AnswerName(e.M.Req, a))
	}
}

// held reports whether a message waits for a command: because it matches a
// pattern, or because one that was sent before it on the same connection does.
func (x *Wire) held(i int) bool {
	e := x.Flight[i]
	if x.World.Manual || e.Kind == world.EvLate || x.matches(e) {
		return true
	}
	return slices.ContainsFunc(x.Flight[:i], func(o world.Event) bool { return follows(o, e) && x.matches(o) })
}

func (x *Wire) matches(e world.Event) bool {
	is := x.Names.Of(e)
	return slices.ContainsFunc(x.Holds, func(p world.Parcel) bool { return p.Covers(is) })
}

// follows reports whether o was sent on the same connection as e and in the
// same direction.
func follows(o, e world.Event) bool {
	ordered := o.Kind == world.EvRequest || o.Kind == world.EvAnswer
	return ordered && o.Kind == e.Kind && o.M.Link == e.M.Link && o.M.Gen == e.M.Gen
}

// Settle delivers what nothing holds back, and handles what follows within a
// moment.
func (x *Wire) Settle() {
	w := x.World
	for range maxAtOnce {
		i := 0
		for i < len(x.Flight) && x.held(i) {
			i++
		}
		switch {
		case i < len(x.Flight):
			x.Arrive(i)
		case !w.Queue.Empty() && w.Queue.Next() <= w.Now+course.Moment(time.Microsecond):
			e := w.Queue.Pop()
			x.Handle(e, max(e.At, w.Now))
		default:
			return
		}
	}
	x.Say("more than %d messages at one moment: the trace ends", maxAtOnce)
	x.Over = true
}

// maxAtOnce is far above what any honest trace takes.
const maxAtOnce = 2000

// Arrive has the message at that place arrive now.
func (x *Wire) Arrive(i int) {
	e := x.Flight[i]
	x.Flight = slices.Delete(x.Flight, i, i+1)
	x.Handle(e, max(x.World.Now, min(e.At, x.World.Now+4)))
}

func (x *Wire) Handle(e world.Event, at course.Moment) {
	w := x.World
	w.Now = at
	w.Dispatch(e)
	x.Check()
}

// Check says which checks fail now.
func (x *Wire) Check() {
	w := x.World
	w.Checks.Always()
	if v := w.Broken; v != nil && !x.Said[v.Kind] {
		x.Said[v.Kind] = true
		x.Say("VIOLATION %s: %s", v.Kind, v.What)
	}
	w.Broken = nil
}

// Until lets time pass until a moment.
func (x *Wire) Until(to course.Moment) {
	w := x.World
	x.Settle()
	for !x.Over && !w.Queue.Empty() && w.Queue.Next() <= to {
		e := w.Queue.Pop()
		x.Handle(e, max(e.At, w.Now))
		x.Settle()
	}
	w.Now = max(w.Now, to)
	x.Settle()
}

// Find returns the places of what a pattern stands for, or an error if nothing
// does.
func (x *Wire) Find(p world.Parcel) ([]int, error) {
	var at []int
	for i, e := range x.Flight {
		if p.Covers(x.Names.Of(e)) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return nil, fmt.Errorf("nothing under way is %v", p)
	}
	return at, nil
}

// Changed says what has become of a claim.
func (x *Wire) Changed(a *world.Attempt) {
	now := a.Claim.State.Phase()
	switch {
	case a.Part == a.Part.Proc.Follower.Succession: // what is decided is said
	case now.Final():
		s := fmt.Sprintf("%v %s", a, phases[now])
		if now != lease.Left {
			s += " at " + Seconds(time.Duration(x.World.Now)-time.Second)
		}
		x.Say("%s", s)
		delete(x.Seen, a)
	default:
		x.Note(a)
		x.Say("%s", Status(a))
	}
}

func (x *Wire) Note(a *world.Attempt) {
	x.Seen[a] = Glance{a.Claim.State.Phase(), a.Claim.State.Ticket(), a.Claim.Deadline()}
}

// Callers says which callers do something else than was said.
func (x *Wire) Callers() {
	for t := range x.World.Participants() {
		if t.Value == nil {
			continue
		}
		for _, c := range t.Value.Callers {
			does := Does(c)
			if was, known := x.Does[c.Name]; does != was && (known || c.Doing != world.Resting) {
				x.Does[c.Name] = does
				x.Say("%s %s", c.Name, does)
			}
		}
	}
}

// Unserved says which callers wait.
func (x *Wire) Unserved() {
	for t := range x.World.Participants() {
		if t.Value == nil {
			continue
		}
		for _, c := range t.Value.Callers {
			if c.Doing == world.Waiting || c.Doing == world.Acquiring {
				x.Say("%s has waited since %s", c.Name, Seconds(time.Duration(c.Since)-time.Second))
			}
		}
	}
}
