package world

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
)

// How a node handles requests other than those of claims: its marker, its set,
// and the questions of a repair, with the names that it lists. The record and
// the number of permits are kept by the model; additional names are only known
// or unknown.
//
// Invariant: a node that is marked as caught up has every name that any node
// listed. The simulator reports the violation "record" where it has not.

// attend does what is asked of a node outside any claim.
func (n *Node) attend(m *Message) protocol.Answer {
	w := n.World
	inc, _ := n.Model.Incarnation()
	_, marked := n.Model.Incarnation()
	set := n.Model.Set()
	switch asks := m.about == Hello || m.about == thatMark || m.about == theTime; {
	case asks && n.Lie == nil && m.Link.Proc.Follower.Members != nil && (m.stamp != set.Stamp() || !marked):
		return protocol.Answer{Status: protocol.OtherSet, Clock: n.Clock.Micros(w.Now)}
	case m.about == repairs:
		m.question.err = n.asked(m)
	case m.about == thatMark && (protocol.Incarnation(m.Req.Ticket) == inc || m.Req.Ticket == 0 && n.replica):
		w.Log("process %s has node %d marked", m.Link.Proc.Name, n.Index)
		if !n.Clock.jumped && !n.replica && !n.back {
			w.Fail("silenced", "process %s has node %d marked, whose clock has not jumped", m.Link.Proc.Name, n.Index)
		}
		n.mark()
	case m.about == theSet:
		n.says(m)
	case m.about == moves && n.Lie == nil:
		m.set = n.Step(m.step)
	case m.about == moves:
		m.set = n.Keeps()
	case m.about == Hello && inc == 0: // it has no marker
		n.Model.Mark(n.Millis(), n.Incarnation())
	}
	inc, _ = n.Model.Incarnation()
	return protocol.Answer{Incarnation: inc, Clock: n.Clock.Micros(w.Now)}
}

// says is what a node says when it is asked so.
func (n *Node) says(m *Message) {
	m.set = n.Keeps()
	if m.next.Of = m.of; n.Lie == nil {
		has := n.Model.Name(nodeset.SuccessorName(m.of)).Recorded()
		m.next.Version = has.Version
		m.next.Config, _ = nodeset.ParseConfiguration(string(has.Value))
	}
}

// Keeps is what the node says of its set. A client reads it from a text.
func (n *Node) Keeps() nodeset.NodeSet {
	text := n.Model.SetText()
	if n.Lie != nil {
		text = n.Lie()
	}
	has, ok := nodeset.ParseNodeSet(text)
	if !ok {
		n.World.Fail("set", "node %s keeps %q", n.Address(), text)
	}
	return has
}

// Step carries out a step of the set's register.
func (n *Node) Step(s nodeset.RecordStep) nodeset.NodeSet {
	w := n.World
	n.lives++
	n.Model.Step(n.Millis(), s, n.Incarnation())
	if inc, _ := n.Model.Incarnation(); inc == n.Incarnation() {
		n.beyondDoubt()
	} else {
		n.lives--
	}
	has := n.Keeps()
	if c := has.Recorded(); c != nil && s.Kind == nodeset.SetCommit && c.Stamp == s.Config.Stamp {
		w.Decisions.decides(c)
	}
	if s.Kind == nodeset.SetAccept && w.Decisions.allAccepted(s) {
		w.Decisions.decides(s.Config)
	}
	w.Log("node %s: %v %s: %v", n.Address(), s.Kind, s.Ballot, has.String())
	if w.Stepped != nil {
		w.Stepped()
	}
	return has
}

// Forges has the node show a later configuration, and serve every request: of
// it alone if alone, else of the present members with the others elsewhere.
func (n *Node) Forges(alone bool) {
	n.World.Log("node %s lies", n.Address())
	own := n.Keeps()
	n.Lie = func() string {
		c := *n.World.Decisions.Latest()
		c.Stamp, c.Stage = nodeset.StampOf(99, nodeset.Ballot(fmt.Sprintf("%019d", 99))), nodeset.Stable
		if c.Members = slices.Clone(c.Members); alone {
			c.Members = []nodeset.Member{{Number: 0, Identity: own.Identity, Addr: n.Address()}}
		}
		for i := range c.Members {
			m := &c.Members[i]
			if m.Role = nodeset.Stays; m.Identity != own.Identity {
				m.Addr += "x"
			}
		}
		return (&nodeset.NodeSet{Phase: nodeset.SetRecorded, Identity: own.Identity, Config: &c}).String()
	}
}

// asked has the node answer a question of a repair.
func (n *Node) asked(m *Message) error {
	by, set := m.Link.Proc, n.Model.Set()
	_, marked := n.Model.Incarnation()
	q := m.question
	switch {
	case n.Refuse:
		return errRefused
	// They name the marker's key.
	case by.Follower.Members != nil && n.Lie == nil && m.stamp != set.Stamp() &&
		(q.op == "look" || q.op == "complete"):
		return errOtherSet
	case !marked:
		return errUnmarked
	}
	q.does(n)
	return nil
}

// marker is what the node says of itself.
func (n *Node) marker() repair.Marker {
	inc, _ := n.Model.Incarnation()
	set := n.Model.Set()
	return repair.Marker{Incarnation: inc, Home: string(set.Stamp()), CaughtUp: n.Model.CaughtUp(), Kept: n.Model.Kept(),
		Wait: n.Model.Recovering(n.Millis())}
}

// perPortion is how many names a node lists at a time.
const perPortion = 7

// list lists a portion of the names that the node has something of.
func (n *Node) list(cursor string) (names []string, next string) {
	all := slices.Sorted(maps.Keys(n.Names))
	if n.Data(0).HasRegister() {
		all = append(all, recordName)
	}
	for _, name := range slices.Sorted(n.Model.Names()) {
		if strings.HasPrefix(name, successor) && n.Model.Name(name).HasRegister() {
			all = append(all, name)
		}
	}
	if limit, _ := n.Data(0).Limit(); limit > 0 {
		all = append(all, numberName)
	}
	from, err := strconv.Atoi(cursor)
	if err != nil {
		panic(err)
	}
	from = min(from, len(all))
	to := min(from+perPortion, len(all))
	if next = strconv.Itoa(to); to == len(all) {
		next = "0"
	}
	return all[from:to], next
}

// Complete marks the node as caught up.
func (n *Node) Complete(inc protocol.Incarnation) {
	w := n.World
	w.Log("node %d is caught up", n.Index)
	w.Judge.CaughtUp(n)
	w.Tape.Note("caughtup %d", n.Index+1)
	if w.Wire != nil {
		w.Wire.Say("node %d is caught up", n.Index+1)
	}
	n.Model.Complete(inc)
}

// bringName brings a node a name that has no register here. The outcome is
// lease.Asking if too few nodes answer.
func (m *mender) bringName(n *Node, name string) lease.Outcome {
	w := m.p.World
	switch {
	case !m.p.reaches(n) || !m.attested(n):
		return lease.Asking
	case w.Undecided[name] || w.Held[name]:
		return lease.Inconclusive
	case name == numberName:
		m.bringNumber(n)
	default:
		n.Names[name] = true
	}
	return lease.Settled
}

// attested: enough nodes alongside n would answer a read of a register that is
// not simulated.
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
			n.Data(0).Resize(o.Data(0).Limit())
		}
	}
}
