package world

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// Tape records a schedule as a trace: what chance and the plan of an aim
// decide, and in which order everything arrives. What follows from that is not
// recorded.
type Tape struct {
	World  *World
	names  names
	Lines  []string
	before []string // what an aim has done before the schedule begins
	at     Moment   // of the last line
	depth  int      // inside of something that has been recorded
	plan   bool     // the plan of an aim is at work
}

// setup begins the trace with the settings and the clocks.
func (x *Tape) setup() {
	w := x.World
	s := fmt.Sprintf("nodes %d ttl %v guard %v retention %v timeout %v", len(w.Nodes), w.TTL, w.Guard, w.Retention, w.NodeTimeout)
	switch {
	case w.Counting:
		s += fmt.Sprintf(" semaphore %d", w.Capacity)
	case w.Capacity > 1:
		s += " rwlock"
	}
	for _, o := range []struct {
		name string
		n    int
	}{{"locks", w.Locks}, {"portion", w.Portion}, {"room", w.Window}} {
		if o.n > 0 {
			s += fmt.Sprintf(" %s %d", o.name, o.n)
		}
	}
	for _, o := range []struct {
		name string
		on   bool
	}{{"silent", !w.Eager}, {"fresh", !w.Bootstrap}} {
		if o.on {
			s += " " + o.name
		}
	}
	x.Lines, x.at = append(x.Lines, s+" manual"), w.Now
	for _, n := range w.Nodes {
		x.note("clock %d offset %d rate %v", n.Index+1, n.Clock.Offset, n.Rate)
	}
	for _, p := range w.Procs {
		s := fmt.Sprintf("process %s offset %d rate %v", p.Label, p.Clock.Offset, p.Rate)
		x.note("%s", s)
	}
	x.Lines = append(x.Lines, x.before...)
}

// note records a command.
func (x *Tape) note(format string, args ...any) {
	if x == nil || x.depth > 0 {
		return
	}
	if len(x.Lines) == 0 {
		if !strings.HasPrefix(format, "clock") { // setup tells what the clocks show
			x.before = append(x.before, fmt.Sprintf(format, args...))
		}
		return
	}
	if now := x.World.Now; now != x.at {
		x.Lines = append(x.Lines, fmt.Sprintf("at %v", time.Duration(now)-time.Second))
		x.at = now
	}
	x.Lines = append(x.Lines, fmt.Sprintf(format, args...))
}

// within records nothing until the function that it returns is called: what
// happens follows from what has been recorded.
func (x *Tape) within() func() {
	if x == nil {
		return func() {}
	}
	x.depth++
	return func() { x.depth-- }
}

// event records that something arrives.
func (x *Tape) event(e Event) {
	if x == nil {
		return
	}
	x.plan = e.Kind == evFunc
	switch {
	case e.M != nil && e.M.about == repairs: // a trace tells of repairs by what they lead to
	case e.Kind == evFunc || e.Kind == evProc || e.Proc != nil && e.Gen != e.Proc.Epoch:
	case e.Kind == EvTimer:
		if e.At == e.Att.Timer {
			x.note("tick %s", e.Att.Part.Label())
		}
	case e.Kind == evRequest && e.M.Gen != e.M.Link.Gen:
	default:
		x.note("deliver %v", x.names.Of(e).exact())
	}
}

// exact is the name of one message and of no other.
func (p Parcel) exact() string {
	if p.No == 1 && p.Op != "" {
		return p.String() + "#1"
	}
	return p.String()
}

func (x *Tape) claim(t *Participant, id protocol.ID, d process.Deferral) {
	s := fmt.Sprintf("claim %s weight %d wall %v id %s", t.Label(), t.Weight, t.Proc.Wall, hex.EncodeToString(id[:]))
	if t.Lock > 0 {
		s += fmt.Sprintf(" lock %d", t.Lock+1)
	}
	if t.try {
		s += " try"
	}
	if d.Nodes != 0 {
		var ns []string
		for i := range x.World.Nodes {
			if d.Nodes&(1<<i) != 0 {
				ns = append(ns, fmt.Sprint(i+1))
			}
		}
		s += fmt.Sprintf(" defer %s %v", strings.Join(ns, ","), d.After)
	}
	x.note("%s", s)
}

func (x *Tape) registerOp(p *Proc, owner *Attempt, in *lease.RegisterOp) {
	label := p.Label
	if owner != nil {
		label = owner.Part.Label()
	}
	switch {
	case in.Repair > 0:
		x.note("repair %d by %s told", in.Repair, label)
	case in.Op == protocol.OpPut && in.Stored.Erased:
		x.note("erase %s seq %d", label, in.Stored.Seq)
	case in.Op == protocol.OpPut:
		x.note("put %s %s seq %d", label, strings.ReplaceAll(string(in.Stored.Value), " ", "-"), in.Stored.Seq)
	case in.Alive:
		x.note("read %s alive", label)
	default:
		x.note("%v %s", in.Op, label)
	}
}
