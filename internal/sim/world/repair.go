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

// Each process repairs nodes by the code that runs in production
// (repair.Repair and repair.Attempt). This file has the attempts' questions
// answered, as core/repair.go does.
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

// repairs does what the process's Repair wants.
func (m *mender) repairs(todo *repair.Task) {
	p, w, a := m.p, m.p.World, todo.Attempt
	switch {
	case a == nil && w.Wire != nil && !w.Repairs && len(m.Mended) == 0:
		p.Client.Spread(todo.Number)
	case a == nil:
		p.Later(2*w.Delay, func() {
			for _, n := range w.Nodes {
				if m.attested(nil) && p.reaches(n) {
					m.bringNumber(n)
				}
			}
			p.Client.Spread(todo.Number)
		})
	case p.Link(a.Node) != p.nowhere && !m.mends(p.Link(a.Node).Node):
		// Nothing is missing there, for all that this world, or this trace,
		// knows.
		a.Spare()
		m.ended(a)
	default:
		p.run(func(t *task) {
			if a.Run(asker{t, a.Node}); !t.gone {
				m.ended(a)
			}
		})
	}
}

// ended reports an attempt that has ended.
func (m *mender) ended(a *repair.Attempt) {
	p, w := m.p, m.p.World
	report, do := p.Client.Repaired(p.Now(), a)
	if report != nil && w.Wire != nil {
		if end := m.repairEnd(p.Link(a.Node).Index+1, report); end != m.repaired[a.Node] {
			m.repaired[a.Node] = end
			w.Wire.Say("%s", end)
		}
	}
	p.CarryOut(do)
}

// question is what a node is asked about itself.
type question struct {
	op   string        // in traces
	does func(n *Node) // what the node does, and tells
	told func(err error)
	err  error
}

// ask asks a node, and waits for the answer. Without a limit nothing waits.
func (t *task) ask(op string, node int, limit time.Duration, does func(n *Node)) (err error) {
	p, l := t.p, t.p.Link(node)
	goesOn := t.wait(func(done func()) {
		if p.World.Trace != nil {
			p.World.Log("process %s: %s, node %d", p.Name, op, node)
		}
		q := &question{op: op, does: does, told: func(error) {}}
		l.transfer(&Message{about: repairs, question: q, Link: l, Req: protocol.Request{Node: node, Sent: p.Now()}})
		if limit == 0 {
			done()
			return
		}
		answered := false
		q.told = func(e error) {
			if !answered {
				answered, err = true, e
				done()
			}
		}
		p.Later(limit, func() { q.told(errSilent) })
	})
	if !goesOn {
		return errSilent
	}
	return err
}

// look asks a node for its marker.
func (t *task) look(node int) (m repair.Marker, err error) {
	err = t.ask("look", node, t.p.World.NodeTimeout, func(n *Node) { m = n.marker() })
	return m, err
}

// Survey asks all nodes whether one more may be restarted, as "quorate check"
// does, and calls then with the answer.
func (m *mender) Survey(then func(may bool)) {
	g, nodes := m.p.Client.Group(), make([]repair.NodeHealth, m.p.Client.Group().Nodes)
	m.p.run(func(t *task) {
		t.each(len(nodes), func(t *task, i int) {
			m, err := t.look(i)
			nodes[i] = repair.NodeHealth{Votes: err == nil && m.Wait == 0, CaughtUp: m.CaughtUp}
		})
		if !t.gone {
			then(repair.MayRestart(nodes, g.Sets))
		}
	})
}

// UntilSpare surveys the nodes again and again until one more may be restarted,
// and calls then.
func (m *mender) UntilSpare(pause time.Duration, then func()) {
	m.Survey(func(may bool) {
		if may {
			then()
		} else {
			m.p.Later(pause, func() { m.UntilSpare(pause, then) })
		}
	})
}

// asker is the repair.IO of an attempt at a node.
type asker struct {
	*task
	node int
}

func (a asker) Group() protocol.Group  { return a.p.Client.Group() }
func (asker) Permanent(err error) bool { return err == errRefused }

func (a asker) Each(n int, f func(io repair.IO, k int)) {
	a.each(n, func(t *task, k int) { f(asker{t, a.node}, k) })
}

// Every has no part in the order of events: it ends with the attempt.
func (a asker) Every(d time.Duration, f func()) (stop func()) {
	over := false
	var next func()
	next = func() {
		a.p.Later(d, func() {
			if !over {
				f()
				next()
			}
		})
	}
	next()
	return func() { over = true }
}

func (a asker) Look(node int, _ bool) (repair.Marker, error) { return a.look(node) }

func (a asker) TakeTurn(d time.Duration) (ours bool, err error) {
	err = a.ask("turn", a.node, a.p.World.NodeTimeout, func(n *Node) {
		now := n.Millis()
		if ours = n.TurnEnds <= now; ours {
			n.TurnEnds, n.TurnOf = now+d.Milliseconds(), a.p
		}
	})
	return ours, err
}

func (a asker) Prolong(d time.Duration, _ int) {
	a.ask("stay", a.node, 0, func(n *Node) {
		if now := n.Millis(); n.TurnEnds > now {
			n.TurnEnds = now + d.Milliseconds()
		}
	})
}

func (a asker) YieldTurn() {
	a.ask("yield", a.node, 0, func(n *Node) { n.TurnEnds, n.TurnOf = 0, nil })
}

func (a asker) List(node int, cursor string) (names []string, next string, err error) {
	err = a.ask("list", node, 10*a.p.World.NodeTimeout, func(n *Node) { names, next = n.list(cursor) })
	return names, next, err
}

func (a asker) Mark(inc protocol.Incarnation, home string) (ok bool, err error) {
	err = a.ask("complete", a.node, a.p.World.NodeTimeout, func(n *Node) {
		if m := n.marker(); m.Incarnation == inc && m.Home == home {
			ok = true
			n.Complete(inc)
		}
	})
	return ok, err
}

// Read reads the record, or what follows the set, as in production. Other
// names have no registers here: a node has one, or has not.
func (a asker) Read(name string, succession bool) (outcome lease.Outcome, err error) {
	p, w, n := a.p, a.p.World, a.p.Link(a.node).Node
	p.Mender.brings(n, 1)
	if w.Turns && n.TurnOf != nil && n.TurnOf != p && n.TurnEnds > n.Millis() {
		w.Fail("busy", "process %s repairs node %d while process %s has the turn", p.Name, n.Index, n.TurnOf.Name)
	}
	goesOn := a.wait(func(done func()) {
		if name != recordName && !strings.HasPrefix(name, successor) {
			p.Later(w.Around(4*w.Delay), func() {
				outcome = p.Mender.bringName(n, name)
				done()
			})
			return
		}
		in := lease.RegisterOp{Op: protocol.OpRead, Repair: a.node + 1, Succession: succession}
		of := &process.Name{Name: name}
		if name == recordName {
			of = nil
		}
		p.RegisterOps.StartNamed(4*w.NodeTimeout, nil, of, in, func(i *RegisterOp, _ bool) {
			outcome = i.Op.Outcome()
			done()
		})
	})
	p.Mender.brings(n, -1)
	if !goesOn || outcome == lease.Asking {
		return outcome, errSilent
	}
	return outcome, nil
}

func (a asker) Decide(name string, succession bool) (ok bool, err error) {
	p, w := a.p, a.p.World
	a.wait(func(done func()) {
		switch {
		case succession:
			of := change.NewSuccession(p.Follower.Members.Config(), nil, w.TTL, w.NodeTimeout)
			p.Follower.Succeed(of, func() {
				if c, _ := of.Decided(); c != nil {
					w.Decisions.Successor(p, c)
				}
				ok = true // whether it is decided shows next
				done()
			})
		case name == recordName:
			p.Mender.decide(func(decided bool) { ok = decided; done() })
		default:
			p.Later(4*w.Delay, func() {
				delete(w.Undecided, name)
				ok = !w.Held[name]
				done()
			})
		}
	})
	return ok, nil
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
	r := &lease.Run{Try: true, Within: repair.DecideWithin(p.World.NodeTimeout, p.World.TTL, 2*p.World.Delay)}
	m.decider.carryOut(r.Decide, then)
}

// repairEnd says in a trace how an attempt to repair a node has ended.
func (m *mender) repairEnd(node int, r *repair.Report) string {
	few, is := r.Err.(*repair.TooFew)
	switch {
	case r.Err == nil:
		return fmt.Sprintf("%s has repaired node %d, names: %d", m.p.Label, node, r.Names)
	case !is:
		return fmt.Sprintf("%s cannot repair node %d: %v", m.p.Label, node, r.Err)
	}
	var silent []string
	for i, err := range few.Nodes {
		if err != nil {
			silent = append(silent, fmt.Sprint(m.p.Link(i).Index+1))
		}
	}
	return fmt.Sprintf("%s cannot repair node %d: too few others can list names, not %s", m.p.Label,
		node, strings.Join(silent, " "))
}

// brings counts the names that a process is bringing to a node.
func (m *mender) brings(n *Node, more int) {
	if m.reading[n.Index] += more; m.reading[n.Index] > maxReads {
		m.p.World.Fail("busy", "process %s brings %d names to node %d at once",
			m.p.Name, m.reading[n.Index], n.Index)
	}
}
