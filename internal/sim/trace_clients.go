package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// clients is all that a trace knows of client processes and their claims. A label names a
// claim: a letter for the process, and a number for all but its first claim, as in e and e2.
type clients interface {
	claim(label string, try bool, weight uint64) error
	hold(label, what string, weight uint64) error               // what a holder, or a waiter, does
	record(label string, in protocol.RegisterOp, seq int) error // seq: which of the claim's writes; -1: the next
	repair(label string, n *node, only bool) error
	process(label string) *proc
	participant(label string) (*participant, error)
	meet(p *proc)
	giveUp(no int)
	changes(x *wire)
	show(x *wire, label string) error
}

// cast implements clients with the processes of the simulator, around protocol.Claim.
type cast struct {
	w      *world
	values int // written so far
	last   map[string]*attempt
}

// process returns the process of a label, which starts when it is first named.
func (c *cast) process(label string) *proc {
	w := c.w
	for _, p := range w.procs {
		if p.label == label[:1] {
			return p
		}
	}
	p := newProc(w, len(w.procs))
	p.label, p.off = label[:1], -time.Second
	p.adjust()
	w.procs = append(w.procs, p)
	if !w.wire.manual { // else the command says when its clock is known
		c.meet(p)
		w.wire.settle()
	}
	return p
}

// meet has a process begin to look at the nodes' clocks.
func (c *cast) meet(p *proc) {
	for _, l := range p.links {
		l.ask(hello, 0)
	}
	p.begins()
}

// participant returns the participant of a label, which is made when it is first named.
func (c *cast) participant(label string) (*participant, error) {
	no := 1
	if n, err := strconv.Atoi(label[1:]); err == nil {
		no = n
	} else if len(label) > 1 {
		return nil, fmt.Errorf("%q is no claim, such as e or e2", label)
	}
	p := c.process(label)
	for len(p.parts) < no {
		t := newParticipant(p, len(p.parts))
		t.name = t.label()
		p.parts = append(p.parts, t)
	}
	return p.parts[no-1], nil
}

// attempt returns the claim of a label.
func (c *cast) attempt(label string) (*attempt, error) {
	t, err := c.participant(label)
	if err != nil {
		return nil, err
	}
	if t.att == nil {
		return nil, fmt.Errorf("%s has no claim", label)
	}
	return t.att, nil
}

func (c *cast) claim(label string, try bool, weight uint64) error {
	t, err := c.participant(label)
	if err != nil {
		return err
	}
	if t.att != nil {
		return fmt.Errorf("%s has a claim", label)
	}
	t.weight = weight
	t.acquire(try)
	c.note(t)
	return nil
}

// note remembers the claim of t beyond its end: a put may come later.
func (c *cast) note(t *participant) {
	if t.att != nil {
		c.last[t.label()] = t.att
	}
}

func (c *cast) hold(label, what string, weight uint64) error {
	a, err := c.attempt(label)
	if err != nil {
		return err
	}
	a.before()
	switch what {
	case "leave":
		a.Leave(a.local())
	case "renew":
		a.Renew(a.local())
	case "shrink":
		a.Shrink(a.local(), weight)
	case "mute":
		a.StopRenewal()
	case "tick":
		w := c.w
		if a.timer != never {
			w.wire.handle(event{at: a.timer, kind: evTimer, proc: a.part.proc, gen: a.part.proc.epoch, att: a}, w.now)
		}
		return nil
	}
	a.after()
	return nil
}

func (c *cast) record(label string, in protocol.RegisterOp, seq int) error {
	var owner *attempt
	if in.Op != protocol.OpRead {
		if owner = c.last[label]; owner == nil {
			return fmt.Errorf("%s has no claim", label)
		}
		in.Stored.Version = protocol.Version{Ticket: owner.Ticket(), ID: owner.ID}
		if in.Op == protocol.OpPut {
			c.values++
			in.Stored.Seq = uint64(c.values)
			if seq >= 0 {
				in.Stored.Seq = uint64(seq)
			}
		}
	}
	c.startRegisterOp(c.process(label), owner, in, fmt.Sprintf("%s %v", label, in.Op))
	return nil
}

// giveUp ends an operation on the record, by its number.
func (c *cast) giveUp(no int) {
	for _, p := range c.w.procs {
		for _, i := range slices.Clone(p.registerOps) {
			if i.no == no {
				i.end(false)
			}
		}
	}
}

// outcomes say what has become of an operation on the record.
var outcomes = map[protocol.Outcome]string{
	protocol.Asking: "gives up", protocol.Settled: "done", protocol.Inconclusive: "left to the next run",
	protocol.Superseded: "overtaken by a later run", protocol.Refused: "refused",
}

func (c *cast) startRegisterOp(p *proc, owner *attempt, in protocol.RegisterOp, what string) {
	x := c.w.wire
	p.startRegisterOp(owner, in, func(i *registerOp, ok bool) {
		s := what + ": " + outcomes[i.Outcome()]
		if ok && i.Op != protocol.OpPut {
			s += ", finds " + storedName(i.Newest())
		}
		if adopted, few := i.Adopt(); ok && few && !x.manual {
			s += " on a minority and puts it again"
			c.startRegisterOp(p, owner, protocol.RegisterOp{Op: protocol.OpPut, Stored: adopted}, what+"'s put")
		}
		x.say("%s", s)
	})
}

// repair has a process repair a node if that lost its data. told: it only reads the record
// so that the node has it, which is a part of that.
func (c *cast) repair(label string, n *node, only bool) error {
	p := c.process(label)
	if only {
		p.startRegisterOp(nil, protocol.RegisterOp{Op: protocol.OpRead, Repair: n.idx + 1}, func(i *registerOp, ok bool) {
			c.w.wire.say("%s repairs node %d: %s", label, n.idx+1, outcomes[i.Outcome()])
		})
		return nil
	}
	p.mended[n] = true
	if p.to(n).up {
		p.meets(n)
	}
	return nil
}

func storedName(s protocol.Stored) string {
	switch {
	case s.Version == protocol.Version{}:
		return "nothing"
	case s.Erased:
		return "erased at " + versionName(s.Version)
	}
	return fmt.Sprintf("%s at %s", s.Value, versionName(s.Version))
}

// phases are what a trace says of a claim.
var phases = map[protocol.Phase]string{
	protocol.Joining: "joins", protocol.Waiting: "waits", protocol.Holding: "holds", protocol.Lost: "is lost",
	protocol.Left: "has left", protocol.Busy: "gives up, as others are ahead", protocol.NoQuorum: "gives up without a quorum",
	protocol.Rejected: "is refused", protocol.Expired: "is abandoned", protocol.TooHeavy: "asks for more than there is",
}

// clockTime names a reading of a clock by the trace's time.
func (w *world) clockTime(c clock, t protocol.Time) string {
	m := c.when(t)
	if m == never {
		return "never"
	}
	return seconds(time.Duration(m) - time.Second)
}

// seconds prints a time of the trace, to the millisecond.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Round(time.Millisecond).Milliseconds())/1000, 'f', -1, 64) + "s"
}

// status is a claim in a line.
func (a *attempt) status() string {
	s := fmt.Sprintf("%v %s, ticket %s", a, phases[a.Phase()], ticketName(a.Ticket()))
	if a.Phase() == protocol.Holding {
		s += ", until " + a.part.proc.w.clockTime(a.part.proc.clock, a.Deadline())
	}
	return s
}

// changed says what has become of a claim.
func (x *wire) changed(a *attempt, was protocol.Phase) {
	now := a.Phase()
	if now.Final() {
		s := fmt.Sprintf("%v %s", a, phases[now])
		if now != protocol.Left {
			s += " at " + seconds(time.Duration(x.w.now)-time.Second)
		}
		x.say("%s", s)
		delete(x.seen, a)
		return
	}
	x.note(a)
	if s := a.status(); was == protocol.Waiting || now != protocol.Waiting || !a.admissible() {
		x.say("%s", s)
	}
}

// admissible: the claim will hold before the event is over, so that it waits needs no line.
func (a *attempt) admissible() bool { return a.Phase() == protocol.Holding }

func (x *wire) note(a *attempt) { x.seen[a] = glance{a.Phase(), a.Ticket(), a.Deadline()} }

// changes says which claims have other tickets or deadlines than was said.
func (c *cast) changes(x *wire) {
	for _, p := range c.w.procs {
		for _, t := range p.parts {
			a := t.att
			if a == nil {
				continue
			}
			c.note(t)
			g := x.seen[a]
			if near := g.deadline.Sub(a.Deadline()).Abs() < time.Millisecond; g.phase != a.Phase() || g.ticket != a.Ticket() || a.Phase() == protocol.Holding && !near {
				x.note(a)
				x.say("%s", a.status())
			}
		}
	}
}

// show says what a claim knows, or what the nodes and all claims do.
func (c *cast) show(x *wire, label string) error {
	w := c.w
	if label != "" {
		a, err := c.attempt(label)
		if err != nil {
			return err
		}
		x.say("%s", a.view())
		return nil
	}
	for _, n := range w.nodes {
		x.say("%s", c.node(n))
	}
	for _, p := range w.procs {
		for _, t := range p.parts {
			if t.att != nil {
				x.say("%s", t.att.view())
			}
		}
	}
	return nil
}

// view is what a claim knows of the nodes.
func (a *attempt) view() string {
	var on, votes []string
	for i := range int(a.Nodes) {
		holds, vote := a.Node(i, a.local())
		if holds {
			on = append(on, strconv.Itoa(i+1))
		}
		if vote {
			votes = append(votes, strconv.Itoa(i+1))
		}
	}
	none := func(s []string) string { return cmp.Or(strings.Join(s, " "), "none") }
	return fmt.Sprintf("%s; known to %s, votes of %s", a.status(), none(on), none(votes))
}

// node is what a node keeps.
func (c *cast) node(n *node) string {
	w := c.w
	now := n.millis(c.w.now)
	s := fmt.Sprintf("node %d:", n.idx+1)
	switch {
	case n.down:
		return s + " down"
	case n.paused:
		s += " stopped;"
	}
	if d := n.model.Recovering(now); d > 0 {
		s += " recovering for " + seconds(d) + ";"
	}
	for i := range w.check.of {
		for _, e := range n.data(i).Claims(now) {
			s += fmt.Sprintf(" %s %s", c.name(e.ID), ticketName(e.Ticket))
			if e.Voted {
				s += " vote"
			}
			s += fmt.Sprintf(" for %s;", seconds(time.Duration(e.Expiry-now)*time.Millisecond))
		}
	}
	if k := n.model.Plain(now); k == "rival" {
		s += " the rival's key;"
	}
	if r := n.model.Recorded(); r.Version != (protocol.Version{}) {
		s += " record " + storedName(r) + ";"
	}
	if limit, at := n.model.Limit(); at > 0 {
		s += fmt.Sprintf(" %d permits;", limit)
	}
	if k := len(n.names); k > 0 {
		s += fmt.Sprintf(" %d names;", k)
	}
	if !n.model.CaughtUp() {
		s += " not caught up;"
	}
	return s + " fence " + ticketName(n.model.Fence())
}

// name is the label of the claim with that id.
func (c *cast) name(id protocol.ID) string {
	for _, p := range c.w.procs {
		for _, t := range p.parts {
			if t.att != nil && t.att.ID == id {
				return t.att.String()
			}
		}
	}
	return "a claim of before"
}
