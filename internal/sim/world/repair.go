package world

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
)

// Each process repairs nodes that lost their data by the machine that runs in
// production (repair.Repair). This file takes its steps, as core/repair.go
// does.
//
// The names that nodes list are the record, the number of permits, and, in some
// aims, further names whose registers are not simulated: a node has one, or has
// not.

// The names of the record and of the number.
const (
	recordName = "record"
	numberName = "number"
)

var (
	errSilent   = errors.New("has not answered in time")
	errUnmarked = errors.New("has no marker")
	errRefused  = errors.New("refuses")
	errOtherSet = errors.New("is of another configuration")
)

// NameOf is the ith of the further names.
func NameOf(i int) string { return fmt.Sprintf("name %03d", i) }

// repairTask is one step on its way.
type repairTask struct {
	step repair.RepairStep
	res  repair.RepairResult
	over bool
	then func(repair.RepairResult) // of an onlooker's, or of an exchange; nil: the machine's
}

// mender is a process as it repairs nodes.
type mender struct {
	p        *Proc
	reading  []int          // by node: names that it is bringing there
	Mended   map[*Node]bool // in a trace: that it repairs
	repaired map[int]string // in a trace: what was last said of that, per node
	decider  *Participant   // one of parts, once there is one
}

// maxReads is how many names a process may be bringing to a node at a time.
const maxReads = 64

func stepName(s repair.RepairStep) string {
	kind := [...]string{
		"looks at", "asks for the turn at", "keeps the turn at", "lists names of", "reads for", "decides for", "marks as caught up",
		"spreads the number from", "gives the turn up at", "cannot repair", "has repaired",
	}[s.Kind]
	return strings.TrimSpace(fmt.Sprintf("repair of node %d: %s node %d %s", s.Target, kind, s.Node, s.Name))
}

// mends: the process repairs the node if that lost its data, and the world has
// something that a node could lack. In a trace only processes that it says so
// of repair nodes.
func (m *mender) mends(n *Node) bool {
	w := m.p.World
	if w.Wire != nil {
		return w.Repairs || m.Mended[n]
	}
	return w.Record || w.Counting || w.Setting.Names > 0 || w.Members > 0
}

// Meets says that the process may repair the node from here on.
func (m *mender) Meets(n *Node) {
	p := m.p
	do := p.Client.Up(p.Now(), p.To(n).No)
	p.CarryOut(slices.DeleteFunc(do, func(a process.Action) bool { return a.Kind == process.ActAsk }))
}

// takeStep takes a step of the machine.
func (m *mender) takeStep(s repair.RepairStep) {
	p, w := m.p, m.p.World
	if w.Trace != nil {
		w.Log("process %s: %s", p.Name, stepName(s))
	}
	t := &repairTask{step: s}
	switch s.Kind {
	case repair.RepairFailed, repair.RepairDone:
		if end := m.repairEnd(s); w.Wire != nil && end != m.repaired[s.Target] {
			m.repaired[s.Target] = end
			w.Wire.Say("%s", end)
		}
	case repair.RepairRead:
		m.readFor(t)
	case repair.RepairDecide:
		if s.Succession {
			of := change.NewSuccession(p.Members.Config(), nil, p.World.TTL, p.World.NodeTimeout)
			p.Succeed(of, func() {
				if c, _ := of.Decided(); c != nil {
					w.Successor(p, c)
				}
				m.stepDone(t, repair.RepairResult{OK: true}) // whether it is decided shows next
			})
			return
		}
		if s.Name != recordName {
			p.Later(4*w.Delay, func() {
				delete(w.Undecided, s.Name)
				m.stepDone(t, repair.RepairResult{OK: !w.Held[s.Name]})
			})
			return
		}
		m.decide(func(ok bool) { m.stepDone(t, repair.RepairResult{OK: ok}) })
	case repair.RepairSpread:
		p.Later(2*w.Delay, func() {
			for _, n := range w.Nodes {
				if m.attested(nil) && p.reaches(n) {
					m.bringNumber(n)
				}
			}
			w.Judge.Resized()
			m.stepDone(t, repair.RepairResult{})
		})
	default:
		limit, to := p.World.NodeTimeout, s.Node
		switch s.Kind {
		case repair.RepairList:
			limit *= 10
		case repair.RepairMark:
			to = s.Target
		case repair.RepairYield:
			t.over = true
		}
		m.ask(t, to, limit)
	}
}

// ask sends a step to a node.
func (m *mender) ask(t *repairTask, to int, limit time.Duration) {
	p, l := m.p, m.p.Link(to)
	l.transfer(&Message{about: repairs, task: t, Link: l, Req: protocol.Request{Node: to, Sent: p.Local(p.World.Now)}})
	if !t.over {
		p.Later(limit, func() { m.stepDone(t, repair.RepairResult{Err: errSilent}) })
	}
}

// Survey asks all nodes whether one more may be restarted, as "quorate check"
// does, and calls then with the answer.
func (m *mender) Survey(then func(may bool)) {
	p := m.p
	sets := p.Client.Group().Sets
	nodes := make([]repair.NodeHealth, p.Client.Group().Nodes)
	left := len(nodes)
	for i := range nodes {
		t := &repairTask{step: repair.RepairStep{Kind: repair.RepairLook, Node: i, Target: i}}
		t.then = func(res repair.RepairResult) {
			nodes[i] = repair.NodeHealth{Votes: res.Err == nil && res.Wait == 0, CaughtUp: res.CaughtUp}
			if left--; left == 0 {
				then(repair.MayRestart(nodes, sets))
			}
		}
		m.ask(t, i, p.World.NodeTimeout)
	}
}

// stepDone reports the end of a step.
func (m *mender) stepDone(t *repairTask, res repair.RepairResult) {
	if t.over {
		return
	}
	t.over = true
	if t.then != nil {
		t.then(res)
		return
	}
	m.p.CarryOut(m.p.Client.StepDone(m.p.Now(), &t.step, res))
}

// readFor reads a name so that the target has it.
func (m *mender) readFor(t *repairTask) {
	p := m.p
	w, n := p.World, p.Link(t.step.Target).Node
	m.brings(n, 1)
	if w.Turns && n.TurnOf != nil && n.TurnOf != p && n.TurnEnds > n.Millis(w.Now) {
		w.Fail("busy", "process %s repairs node %d while process %s has the turn", p.Name, n.Index, n.TurnOf.Name)
	}
	if name := t.step.Name; name == recordName || strings.HasPrefix(name, successor) {
		in := lease.RegisterOp{Op: protocol.OpRead, Repair: t.step.Target + 1, Succession: t.step.Succession}
		of := &process.Name{Name: name}
		if name == recordName {
			of = nil
		}
		p.StartNamedOp(4*p.World.NodeTimeout, nil, of, in, func(i *RegisterOp, _ bool) {
			m.brings(n, -1)
			res := repair.RepairResult{Outcome: i.Outcome()}
			if res.Outcome == lease.Asking {
				res.Err = errSilent
			}
			m.stepDone(t, res)
		})
		return
	}
	p.Later(w.Around(4*w.Delay), func() {
		m.brings(n, -1)
		res := repair.RepairResult{Outcome: lease.Settled}
		switch {
		case !p.reaches(n) || !m.attested(n):
			res = repair.RepairResult{Err: errSilent}
		case w.Undecided[t.step.Name] || w.Held[t.step.Name]:
			res.Outcome = lease.Inconclusive
		case t.step.Name == numberName:
			m.bringNumber(n)
			w.Judge.Resized()
		default:
			n.Names[t.step.Name] = true
		}
		m.stepDone(t, res)
	})
}

// decide has a run of the process's own decide an undecided register.
func (m *mender) decide(then func(ok bool)) {
	p := m.p
	if m.decider == nil {
		m.decider = NewParticipant(p, len(p.Parts))
		m.decider.Lock = 0
		if p.World.Wire != nil {
			m.decider.Name = m.decider.Label()
		}
		p.Parts = append(p.Parts, m.decider)
	}
	r := lease.NewDecision(repair.DecideWithin(p.World.NodeTimeout, p.World.TTL, 2*p.World.Delay))
	m.decider.carryOut(r, func() { then(r.OK()) })
}

// repairEnd says in a trace how an attempt to repair a node has ended.
func (m *mender) repairEnd(s repair.RepairStep) string {
	p := m.p
	switch {
	case s.Kind == repair.RepairDone:
		return fmt.Sprintf("%s has repaired node %d, names: %d", p.Label, p.Link(s.Target).Index+1, s.Count)
	case s.Err != nil:
		return fmt.Sprintf("%s cannot repair node %d: %v", p.Label, p.Link(s.Target).Index+1, s.Err)
	}
	var silent []string
	for i, err := range s.Nodes {
		if err != nil {
			silent = append(silent, fmt.Sprint(p.Link(i).Index+1))
		}
	}
	return fmt.Sprintf("%s cannot repair node %d: too few others can list names, not %s", p.Label, p.Link(s.Target).Index+1, strings.Join(silent, " "))
}

// attested: enough nodes beside n would answer a read of a register that is not
// simulated.
func (m *mender) attested(n *Node) bool {
	p, caughtUp, lacking := m.p, uint32(0), uint32(0)
	for _, o := range p.World.Nodes {
		i := p.Numbered(o)
		if o == n || i < 0 {
			continue
		}
		if !p.reaches(o) {
			lacking |= 1 << i
		} else if o.Model.CaughtUp() {
			caughtUp |= 1 << i
		}
	}
	sets := p.Client.Group().Sets
	return sets.Attested(caughtUp) || sets.All()&lacking == 0
}

// bringNumber gives a node the newest number of permits that the others that
// can be asked know.
func (m *mender) bringNumber(n *Node) {
	for _, o := range m.p.World.Nodes {
		if o != n && m.p.reaches(o) {
			n.Model.Resize(o.Model.Limit())
		}
	}
}

// brings counts the names that a process is bringing to a node.
func (m *mender) brings(n *Node, more int) {
	if m.reading[n.Index] += more; m.reading[n.Index] > maxReads {
		m.p.World.Fail("busy", "process %s brings %d names to node %d at once", m.p.Name, m.reading[n.Index], n.Index)
	}
}
