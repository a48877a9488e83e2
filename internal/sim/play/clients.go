package play

import (
	"fmt"
	"strconv"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// Executing the commands of a trace, and what a trace knows about client
// processes and their claims.

// cast are the processes of the simulator, around lease.Claim. A label names a
// claim: a letter for the process, and a number for all but its first claim, as
// in e and e2.
type cast struct {
	World  *trial.Schedule
	wire   *Wire
	values int // written so far
	last   map[string]*world.Attempt
}

// player carries out the commands of a trace. Before the first command it has no
// cast and knows no commands.
type player struct {
	mutate   func(*course.Setting)
	cast     *cast
	commands map[string]command
}

// bench are the nodes, and what has become of the rival's round of requests to
// them.
type bench struct {
	c     *cast
	set   int           // the nodes that have given it their keys,
	asked protocol.Time // and when it began to ask for them
}

// recorders are processes that record a set step by step.
type recorders struct {
	c          *cast
	recordings map[string]recording // by process: that have not ended
}

// recording is one that waits for the answers to its latest question.
type recording struct {
	*nodeset.Recording
	steps []nodeset.RecordStep
}

// node reads a node.
func (x *cast) node(s string) (*world.Node, error) {
	i := 0
	if _, err := fmt.Sscanf(s, "%d", &i); err != nil || i < 1 || i > len(x.World.Nodes) {
		return nil, fmt.Errorf("%q is no node", s)
	}
	return x.World.Nodes[i-1], nil
}

// nodes reads the nodes that a command names. It returns none if one of the
// words is wrong.
func (x *cast) nodes(a *args) (ns []*world.Node) {
	for _, i := range a.numbers() {
		n, err := x.node(fmt.Sprint(i))
		a.fail(err)
		ns = append(ns, n)
	}
	if a.err != nil {
		return nil
	}
	return ns
}

// proc returns the process of a label, which starts when it is first named.
func (c *cast) proc(label string) *world.Proc {
	w := c.World
	for _, p := range w.Procs {
		if p.Label == label[:1] {
			return p
		}
	}
	p := world.NewProc(w.World, len(w.Procs))
	p.Label = label[:1]
	p.Adjust()
	w.Procs = append(w.Procs, p)
	if !c.World.Manual { // else the command says when its clock is known
		c.meet(p)
		c.wire.Settle()
	}
	return p
}

// meet has a process begin to look at the nodes' clocks.
func (c *cast) meet(p *world.Proc) {
	for _, l := range p.Links {
		l.Ask(world.Hello, 0)
	}
	p.StartClockChecks()
}

// participant returns the participant of a label, which is made when it is
// first named.
func (c *cast) participant(label string) (*world.Participant, error) {
	no := 1
	if n, err := strconv.Atoi(label[1:]); err == nil {
		no = n
	} else if len(label) > 1 {
		return nil, fmt.Errorf("%q is no claim, such as e or e2", label)
	}
	p := c.proc(label)
	for len(p.Parts) < no {
		t := world.NewParticipant(p, len(p.Parts))
		t.Name = t.Label()
		if t.Value != nil {
			t.Value.Rename()
		}
		p.Parts = append(p.Parts, t)
	}
	return p.Parts[no-1], nil
}

// attempt returns the claim of a label.
func (c *cast) attempt(label string) (*world.Attempt, error) {
	t, err := c.participant(label)
	if err != nil {
		return nil, err
	}
	if t.Att == nil {
		return nil, fmt.Errorf("%s has no claim", label)
	}
	return t.Att, nil
}

// note remembers the claim of t beyond its end: a put may come later.
func (c *cast) note(t *world.Participant) {
	if t.Att != nil {
		c.last[t.Label()] = t.Att
	}
}

func (c *cast) act(label, what string, weight uint64) error {
	a, err := c.attempt(label)
	if err != nil {
		return err
	}
	a.Before()
	switch what {
	case "evict":
		for _, n := range c.World.Nodes {
			if weight&(1<<n.Index) != 0 {
				n.Evict(a)
			}
		}
		return nil
	case "leave":
		a.Claim.Leave(a.Now())
	case "renew":
		a.Claim.Renew(a.Now())
	case "shrink":
		a.Claim.Shrink(a.Now(), weight)
	case "mute":
		a.Claim.State.StopRenewal()
		a.Mute = true
	case "tick":
		w := c.World
		if a.Timer != course.Never {
			c.wire.Handle(world.Event{At: a.Timer, Kind: world.EvTimer, Proc: a.Part.Proc,
				Gen: a.Part.Proc.Epoch, Att: a}, w.Now)
		}
		return nil
	}
	a.After()
	return nil
}

func (c *cast) record(label string, in lease.RegisterOp, seq int) error {
	var owner *world.Attempt
	if in.Op != protocol.OpRead {
		if owner = c.last[label]; owner == nil {
			return fmt.Errorf("%s has no claim", label)
		}
		in.Stored.Version = protocol.Version{Ticket: owner.Claim.State.Ticket(), ID: owner.Claim.State.ID}
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

func (c *cast) startRegisterOp(p *world.Proc, owner *world.Attempt, in lease.RegisterOp, what string) {
	p.RegisterOps.Start(owner, in, func(i *world.RegisterOp, ok bool) {
		s := what + ": " + outcomes[i.Op.Outcome()]
		if ok && i.Op.Op != protocol.OpPut {
			s += ", finds " + storedName(i.Op.Newest())
		}
		if adopted, few := i.Op.Adopt(); ok && few && !c.World.Manual {
			s += " on a minority and puts it again"
			c.startRegisterOp(p, owner, lease.RegisterOp{Op: protocol.OpPut, Stored: adopted}, what+"'s put")
		}
		c.wire.Say("%s", s)
	})
}

func storedName(s protocol.Stored) string {
	switch {
	case s.Version == protocol.Version{}:
		return "nothing"
	case s.Erased:
		return "erased at " + world.VersionName(s.Version)
	}
	return fmt.Sprintf("%s at %s", s.Value, world.VersionName(s.Version))
}
