package sim

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// clients is all that a trace knows of client processes and their claims. A
// label names a claim: a letter for the process, and a number for all but its
// first claim, as in e and e2.
type clients interface {
	claim(label string, try bool, weight uint64) error
	hold(label, what string, weight uint64) error            // what a holder, or a waiter, does
	record(label string, in lease.RegisterOp, seq int) error // seq: which of the claim's writes; -1: the next
	repair(label string, n *node, only bool) error
	process(label string) *proc
	participant(label string) (*participant, error)
	meet(p *proc)
	giveUp(no int)
	changes(x *wire)
	show(x *wire, label string) error
}

// cast implements clients with the processes of the simulator, around
// lease.Claim.
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
	p.label = label[:1]
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

// participant returns the participant of a label, which is made when it is
// first named.
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
		if t.value != nil {
			t.value.rename()
		}
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
	case "evict":
		for _, n := range c.w.nodes {
			if weight&(1<<n.idx) != 0 {
				n.evict(a)
			}
		}
		return nil
	case "leave":
		a.Leave(a.local())
	case "renew":
		a.Renew(a.local())
	case "shrink":
		a.Shrink(a.local(), weight)
	case "mute":
		a.StopRenewal()
		a.mute = true
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

func (c *cast) record(label string, in lease.RegisterOp, seq int) error {
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
var outcomes = map[lease.Outcome]string{
	lease.Asking: "gives up", lease.Settled: "done", lease.Inconclusive: "left to the next run",
	lease.Superseded: "overtaken by a later run", lease.Refused: "refused",
}

func (c *cast) startRegisterOp(p *proc, owner *attempt, in lease.RegisterOp, what string) {
	x := c.w.wire
	p.startRegisterOp(owner, in, func(i *registerOp, ok bool) {
		s := what + ": " + outcomes[i.Outcome()]
		if ok && i.Op != protocol.OpPut {
			s += ", finds " + storedName(i.Newest())
		}
		if adopted, few := i.Adopt(); ok && few && !x.manual {
			s += " on a minority and puts it again"
			c.startRegisterOp(p, owner, lease.RegisterOp{Op: protocol.OpPut, Stored: adopted}, what+"'s put")
		}
		x.say("%s", s)
	})
}

// repair has a process repair a node if that lost its data. told: it only reads
// the record so that the node has it, which is a part of that.
func (c *cast) repair(label string, n *node, only bool) error {
	p := c.process(label)
	if only {
		p.startRegisterOp(nil, lease.RegisterOp{Op: protocol.OpRead, Repair: p.to(n).no + 1}, func(i *registerOp, ok bool) {
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
