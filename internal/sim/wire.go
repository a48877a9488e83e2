package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
)

// wire is the network of a world that a trace plays. A message arrives when the
// trace says, or at once where the trace holds nothing back. Chance has no part
// in it.
//
// Invariant: what is under way in one direction of a connection arrives in the
// order in which it was sent. Pushes have a connection of their own.
type wire struct {
	w          *world
	began      moment // when the trace's time is zero
	names      names
	flight     []event  // what is under way, in the order in which it was sent
	holds      []parcel // patterns: what matches one of them waits for a command
	manual     bool     // everything waits, and so do the timers of claims
	sayAnswers bool     // say what a node answers
	over       bool     // messages call forth messages without end
	lines      []string // what the commands of one block have led to
	seen       map[*attempt]glance
	next       start // what the next claim begins with
	said       map[string]bool
	does       map[string]string // what was last said of a caller
	repairs    bool              // each process repairs each node, as in production
	distinct   uint64            // claims so far
}

// start is what a claim begins with beside the settings.
type start struct {
	id    protocol.ID
	fixed bool   // id is to be taken
	later uint32 // the nodes that it asks later, a bit for each
	after time.Duration
}

// glance is what was last said of a claim.
type glance struct {
	phase    lease.Phase
	ticket   protocol.Ticket
	deadline protocol.Time
}

func (x *wire) say(format string, args ...any) {
	x.lines = append(x.lines, fmt.Sprintf(format, args...))
}

// start returns what a claim begins with. Its id follows from the participant
// and the number of claims before it, so its residue is that number.
func (x *wire) start(t *participant) (protocol.ID, *process.Deferral) {
	s := x.next
	x.next = start{}
	if !s.fixed {
		x.distinct++
		for i := range s.id {
			s.id[i] = byte(uint64(t.label()[0])*31 + x.distinct*17 + uint64(i)*7)
		}
		s.id[15] = byte(x.distinct % protocol.Residues)
	}
	return s.id, &process.Deferral{Nodes: s.later, After: s.after}
}

// take has a message wait until it is delivered.
func (x *wire) take(e event) {
	x.names.of(e)
	switch {
	case e.kind == evTimer && !x.manual:
		x.w.queue.push(e)
	case e.kind != evTimer: // a timer by hand needs no event, see tick
		x.flight = append(x.flight, e)
	}
}

// held reports whether a message waits for a command: because it matches a
// pattern, or because one that was sent before it on the same connection does.
func (x *wire) held(i int) bool {
	e := x.flight[i]
	if x.manual || e.kind == evLate || x.matches(e) {
		return true
	}
	return slices.ContainsFunc(x.flight[:i], func(o event) bool { return follows(o, e) && x.matches(o) })
}

func (x *wire) matches(e event) bool {
	is := x.names.of(e)
	return slices.ContainsFunc(x.holds, func(p parcel) bool { return p.covers(is) })
}

// follows reports whether o was sent on the same connection as e and in the
// same direction.
func follows(o, e event) bool {
	ordered := o.kind == evRequest || o.kind == evAnswer
	return ordered && o.kind == e.kind && o.m.link == e.m.link && o.m.gen == e.m.gen
}

// settle delivers what nothing holds back, and handles what follows within a
// moment.
func (x *wire) settle() {
	w := x.w
	for range maxAtOnce {
		i := 0
		for i < len(x.flight) && x.held(i) {
			i++
		}
		switch {
		case i < len(x.flight):
			x.arrive(i)
		case !w.queue.empty() && w.queue.next() <= w.now+moment(time.Microsecond):
			e := w.queue.pop()
			x.handle(e, max(e.at, w.now))
		default:
			return
		}
	}
	x.say("more than %d messages at one moment: the trace ends", maxAtOnce)
	x.over = true
}

// maxAtOnce is far above what any honest trace takes.
const maxAtOnce = 2000

// arrive has the message at that place arrive now.
func (x *wire) arrive(i int) {
	e := x.flight[i]
	x.flight = slices.Delete(x.flight, i, i+1)
	x.handle(e, max(x.w.now, min(e.at, x.w.now+4)))
}

func (x *wire) handle(e event, at moment) {
	w := x.w
	w.now = at
	w.dispatch(e)
	x.check()
}

// check says which checks fail now.
func (x *wire) check() {
	w := x.w
	w.checks.always()
	if v := w.broken; v != nil && !x.said[v.Kind] {
		x.said[v.Kind] = true
		x.say("VIOLATION %s: %s", v.Kind, v.What)
	}
	w.broken = nil
}

// until lets time pass until a moment.
func (x *wire) until(to moment) {
	w := x.w
	x.settle()
	for !x.over && !w.queue.empty() && w.queue.next() <= to {
		e := w.queue.pop()
		x.handle(e, max(e.at, w.now))
		x.settle()
	}
	w.now = max(w.now, to)
	x.settle()
}

// parcel names what is under way: a request, its answer, or a push.
type parcel struct {
	kind     kind
	from, to string
	op       string
	no       int // of the same kind; 0 in a pattern: any
}

func (p parcel) String() string {
	s := words[p.kind] + p.from + ">" + p.to
	if p.op != "" {
		s += " " + p.op
	}
	if p.no > 1 {
		s += fmt.Sprintf("#%d", p.no)
	}
	return s
}

// words stand before the names of what is neither a request, nor an answer, nor
// a push.
var words = map[kind]string{evLate: "late ", evFail: "failure ", evUp: "up ", evDown: "down "}

// covers reports whether the pattern p stands for o.
func (p parcel) covers(o parcel) bool {
	same := func(a, b string) bool { return a == "*" || a == b }
	kinds := p.kind == o.kind || p.kind == evRequest && o.kind <= evPush && o.kind != evLate && o.kind != evFail
	return kinds && same(p.from, o.from) && same(p.to, o.to) && (p.op == "" || p.op == o.op) && (p.no == 0 || p.no == o.no)
}

// parse reads a parcel or a pattern: [late|failure|up|down] from>to [op[#n]].
func parse(args []string) (p parcel, rest []string, err error) {
	p.kind = evRequest
	for k, s := range words {
		if len(args) > 0 && args[0]+" " == s {
			p.kind, args = k, args[1:]
			break
		}
	}
	if len(args) == 0 {
		return p, nil, fmt.Errorf("a link is missing, such as a>1 or 1>a")
	}
	var ok bool
	if args[0] == "*" {
		p.from, p.to = "*", "*"
	} else if p.from, p.to, ok = strings.Cut(args[0], ">"); !ok {
		return p, nil, fmt.Errorf("%q is no link such as a>1 or 1>a", args[0])
	}
	rest = args[1:]
	if len(rest) > 0 && slices.Contains(operations, strings.Split(rest[0], "#")[0]) {
		op, no, numbered := strings.Cut(rest[0], "#")
		if p.op = op; numbered {
			if _, err := fmt.Sscan(no, &p.no); err != nil {
				return p, nil, fmt.Errorf("%q: %v", rest[0], err)
			}
		}
		rest = rest[1:]
	}
	return p, rest, nil
}

// operations are what a parcel may be.
var operations = []string{
	"join", "settle", "beat", "leave", "read", "open", "put", "repair", "hello", "time", "mark", "longest", "push",
	"look", "turn", "stay", "list", "complete", "yield", "move", "set",
}

// repairOps name the steps of a repair that are messages.
var repairOps = map[repair.RepairKind]string{
	repair.RepairLook: "look", repair.RepairTurn: "turn", repair.RepairStay: "stay", repair.RepairList: "list",
	repair.RepairMark: "complete", repair.RepairYield: "yield",
}

// names gives what is sent a name that is the same in each play.
type names struct {
	sent map[parcel]int
}

// of returns the name of a message. The first call numbers it.
func (n *names) of(e event) parcel {
	if e.kind == evTimer {
		return parcel{kind: e.kind, from: e.att.part.label()}
	}
	m := e.m
	node := fmt.Sprint(m.link.idx + 1)
	p := parcel{from: m.link.proc.label, to: node}
	switch {
	case e.kind == evUp || e.kind == evDown:
		p.kind = e.kind
		return p
	case m.push != nil:
		p.op = "push"
		for _, t := range m.link.proc.parts {
			if t.att != nil && t.att.ID == m.push.ID {
				p.from = t.label()
			}
		}
	case m.att != nil:
		p.from, p.op = m.att.part.label(), m.req.Op.String()
	case m.inq != nil:
		p.op = m.req.Op.String()
	case m.task != nil:
		p.op = repairOps[m.task.step.Kind]
	default:
		p.op = m.about.String()
	}
	if m.no == 0 {
		if n.sent == nil {
			n.sent = map[parcel]int{}
		}
		n.sent[p]++
		m.no, m.from = n.sent[p], p.from
	}
	p.kind, p.no, p.from = e.kind, m.no, m.from
	if e.kind == evAnswer || e.kind == evPush {
		p.from, p.to = p.to, p.from
	}
	return p
}

// find returns the places of what a pattern stands for, or an error if nothing
// does.
func (x *wire) find(p parcel) ([]int, error) {
	var at []int
	for i, e := range x.flight {
		if p.covers(x.names.of(e)) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return nil, fmt.Errorf("nothing under way is %v", p)
	}
	return at, nil
}

// changed says what has become of a claim.
func (x *wire) changed(a *attempt) {
	now := a.Phase()
	switch {
	case a.part == a.part.proc.succession: // what is decided is said
	case now.Final():
		s := fmt.Sprintf("%v %s", a, phases[now])
		if now != lease.Left {
			s += " at " + seconds(time.Duration(x.w.now)-time.Second)
		}
		x.say("%s", s)
		delete(x.seen, a)
	default:
		x.note(a)
		x.say("%s", a.status())
	}
}

func (x *wire) note(a *attempt) { x.seen[a] = glance{a.Phase(), a.Ticket(), a.Deadline()} }

// callers says which callers do something else than was said.
func (x *wire) callers() {
	for t := range x.w.participants() {
		if t.value == nil {
			continue
		}
		for _, c := range t.value.callers {
			does := c.does()
			if was, known := x.does[c.name]; does != was && (known || c.doing != resting) {
				x.does[c.name] = does
				x.say("%s %s", c.name, does)
			}
		}
	}
}

// unserved says which callers wait.
func (x *wire) unserved() {
	for t := range x.w.participants() {
		if t.value == nil {
			continue
		}
		for _, c := range t.value.callers {
			if c.doing == waiting || c.doing == acquiring {
				x.say("%s has waited since %s", c.name, seconds(time.Duration(c.since)-time.Second))
			}
		}
	}
}
