package sim

import (
	"fmt"
	"strconv"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a trace knows of client processes and their claims. Their
// commands are in trace_processes.go.

// cast are the processes of the simulator, around lease.Claim. A label names a
// claim: a letter for the process, and a number for all but its first claim, as
// in e and e2.
type cast struct {
	*wire
	values int // written so far
	last   map[string]*attempt
}

// proc returns the process of a label, which starts when it is first named.
func (c *cast) proc(label string) *proc {
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
	if !c.manual { // else the command says when its clock is known
		c.meet(p)
		c.settle()
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
	p := c.proc(label)
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

// note remembers the claim of t beyond its end: a put may come later.
func (c *cast) note(t *participant) {
	if t.att != nil {
		c.last[t.label()] = t.att
	}
}

func (c *cast) act(label, what string, weight uint64) error {
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
			c.handle(event{at: a.timer, kind: evTimer, proc: a.part.proc, gen: a.part.proc.epoch, att: a}, w.now)
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
	c.startRegisterOp(c.proc(label), owner, in, fmt.Sprintf("%s %v", label, in.Op))
	return nil
}

// outcomes say what has become of an operation on the record.
var outcomes = map[lease.Outcome]string{
	lease.Asking: "gives up", lease.Settled: "done", lease.Inconclusive: "left to the next run",
	lease.Superseded: "overtaken by a later run", lease.Refused: "refused",
}

func (c *cast) startRegisterOp(p *proc, owner *attempt, in lease.RegisterOp, what string) {
	p.startRegisterOp(owner, in, func(i *registerOp, ok bool) {
		s := what + ": " + outcomes[i.Outcome()]
		if ok && i.Op != protocol.OpPut {
			s += ", finds " + storedName(i.Newest())
		}
		if adopted, few := i.Adopt(); ok && few && !c.manual {
			s += " on a minority and puts it again"
			c.startRegisterOp(p, owner, lease.RegisterOp{Op: protocol.OpPut, Stored: adopted}, what+"'s put")
		}
		c.say("%s", s)
	})
}
