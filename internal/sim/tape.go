package sim

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// tape records a schedule as a trace: what chance and the plan of an aim
// decide, and in which order everything arrives. What follows from that is not
// recorded.
type tape struct {
	w      *world
	names  names
	lines  []string
	before []string // what an aim has done before the schedule begins
	at     moment   // of the last line
	depth  int      // inside of something that has been recorded
	plan   bool     // the plan of an aim is at work
}

// setup begins the trace with the settings and the clocks.
func (x *tape) setup() {
	w := x.w
	s := fmt.Sprintf("nodes %d ttl %v guard %v retention %v timeout %v", len(w.nodes), w.ttl, w.guard, w.retention, w.nodeTimeout)
	switch {
	case w.counting:
		s += fmt.Sprintf(" semaphore %d", w.capacity)
	case w.capacity > 1:
		s += " rwlock"
	}
	for _, o := range []struct {
		name string
		n    int
	}{{"locks", w.locks}, {"portion", w.portion}, {"room", w.window}} {
		if o.n > 0 {
			s += fmt.Sprintf(" %s %d", o.name, o.n)
		}
	}
	for _, o := range []struct {
		name string
		on   bool
	}{{"silent", !w.eager}, {"fresh", !w.bootstrap}} {
		if o.on {
			s += " " + o.name
		}
	}
	x.lines, x.at = append(x.lines, s+" manual"), w.now
	for _, n := range w.nodes {
		x.note("clock %d offset %d rate %v", n.idx+1, n.clock.offset, n.rate)
	}
	for _, p := range w.procs {
		s := fmt.Sprintf("process %s offset %d rate %v", p.label, p.clock.offset, p.rate)
		x.note("%s", s)
	}
	x.lines = append(x.lines, x.before...)
}

// note records a command.
func (x *tape) note(format string, args ...any) {
	if x == nil || x.depth > 0 {
		return
	}
	if len(x.lines) == 0 {
		if !strings.HasPrefix(format, "clock") { // setup tells what the clocks show
			x.before = append(x.before, fmt.Sprintf(format, args...))
		}
		return
	}
	if now := x.w.now; now != x.at {
		x.lines = append(x.lines, fmt.Sprintf("at %v", time.Duration(now)-time.Second))
		x.at = now
	}
	x.lines = append(x.lines, fmt.Sprintf(format, args...))
}

// within records nothing until the function that it returns is called: what
// happens follows from what has been recorded.
func (x *tape) within() func() {
	if x == nil {
		return func() {}
	}
	x.depth++
	return func() { x.depth-- }
}

// event records that something arrives.
func (x *tape) event(e event) {
	if x == nil {
		return
	}
	x.plan = e.kind == evFunc
	switch {
	case e.m != nil && e.m.about == repairs: // a trace tells of repairs by what they lead to
	case e.kind == evFunc || e.kind == evProc || e.proc != nil && e.gen != e.proc.epoch:
	case e.kind == evTimer:
		if e.at == e.att.timer {
			x.note("tick %s", e.att.part.label())
		}
	case e.kind == evRequest && e.m.gen != e.m.link.gen:
	default:
		x.note("deliver %v", x.names.of(e).exact())
	}
}

// exact is the name of one message and of no other.
func (p parcel) exact() string {
	if p.no == 1 && p.op != "" {
		return p.String() + "#1"
	}
	return p.String()
}

func (x *tape) claim(t *participant, id protocol.ID, d process.Deferral) {
	s := fmt.Sprintf("claim %s weight %d wall %v id %s", t.label(), t.weight, t.proc.wall, hex.EncodeToString(id[:]))
	if t.lock > 0 {
		s += fmt.Sprintf(" lock %d", t.lock+1)
	}
	if t.try {
		s += " try"
	}
	if d.Nodes != 0 {
		var ns []string
		for i := range x.w.nodes {
			if d.Nodes&(1<<i) != 0 {
				ns = append(ns, fmt.Sprint(i+1))
			}
		}
		s += fmt.Sprintf(" defer %s %v", strings.Join(ns, ","), d.After)
	}
	x.note("%s", s)
}

func (x *tape) registerOp(p *proc, owner *attempt, in *lease.RegisterOp) {
	label := p.label
	if owner != nil {
		label = owner.part.label()
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
