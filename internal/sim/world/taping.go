package world

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// What is recorded while a schedule is played.

// Setup begins the trace on the tape with the settings and the clocks.
func (w *World) Setup() {
	x := w.Tape
	s := fmt.Sprintf("nodes %d ttl %v guard %v retention %v timeout %v", len(w.Nodes), w.TTL,
		w.Guard, w.Retention, w.NodeTimeout)
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
	x.Start(s + " manual")
	for _, n := range w.Nodes {
		x.Note("clock %d offset %d rate %v", n.Index+1, n.Clock.Offset, n.Clock.Rate)
	}
	for _, p := range w.Procs {
		s := fmt.Sprintf("process %s offset %d rate %v", p.Label, p.Clock.Offset, p.Clock.Rate)
		x.Note("%s", s)
	}
	x.Ready()
}

// tape records that something arrives.
func (w *World) tape(e Event) {
	x := w.Tape
	if x == nil {
		return
	}
	x.Plan = e.Kind == evFunc
	switch {
	case e.M != nil && e.M.about == repairs: // a trace tells of repairs by what they lead to
	case e.Kind == evFunc || e.Kind == evProc || e.Proc != nil && e.Gen != e.Proc.Epoch:
	case e.Kind == EvTimer:
		if e.At == e.Att.Timer {
			x.Note("tick %s", e.Att.Part.Label())
		}
	case e.Kind == EvRequest && e.M.Gen != e.M.Link.Gen:
	default:
		x.Note("deliver %v", w.names.Of(e).exact())
	}
}

func (w *World) tapeClaim(t *Participant, id protocol.ID, d lease.Deferral) {
	s := fmt.Sprintf("claim %s weight %d wall %v id %s", t.Label(), t.Weight,
		t.Proc.Wall, hex.EncodeToString(id[:]))
	if t.Lock > 0 {
		s += fmt.Sprintf(" lock %d", t.Lock+1)
	}
	if t.try {
		s += " try"
	}
	if d.Nodes != 0 {
		var ns []string
		for i := range w.Nodes {
			if d.Nodes&(1<<i) != 0 {
				ns = append(ns, fmt.Sprint(i+1))
			}
		}
		s += fmt.Sprintf(" defer %s %v", strings.Join(ns, ","), d.After)
	}
	w.Tape.Note("%s", s)
}

func (w *World) tapeRegisterOp(p *Proc, owner *Attempt, in *lease.RegisterOp) {
	label := p.Label
	if owner != nil {
		label = owner.Part.Label()
	}
	switch {
	case in.Repair > 0:
		w.Tape.Note("repair %d by %s told", in.Repair, label)
	case in.Op == protocol.OpPut && in.Stored.Erased:
		w.Tape.Note("erase %s seq %d", label, in.Stored.Seq)
	case in.Op == protocol.OpPut:
		w.Tape.Note("put %s %s seq %d", label, strings.ReplaceAll(string(in.Stored.Value), " ", "-"), in.Stored.Seq)
	case in.Alive:
		w.Tape.Note("read %s alive", label)
	default:
		w.Tape.Note("%v %s", in.Op, label)
	}
}
