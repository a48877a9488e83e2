package world

import (
	"fmt"
	"maps"
	"time"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
)

// Node is a model.Node in the world.
type Node struct {
	Clock nodeClock
	World *World
	Index int
	Model *model.Node

	Addr   string        // if it was given another address
	Second string        // an address that leads to it as well; empty: none
	Shut   bool          // its first address leads nowhere any more
	Lie    func() string // what it says of its set, if that is not what it keeps; it serves any request then

	Slow     int // factor on delays
	Down     bool
	Gone     bool // stays down after the faults: at most a minority does
	Paused   bool
	Refuse   bool        // fails every request for good, as with a wrong password
	busy     bool        // fails every request for now, as while another program's script runs
	Unmarked bool        // restarted with a memory that may be old, and no client has seen that yet
	saved    *model.Node // what such a restart comes back with
	replica  bool        // it was another node's replica: its data and its marker are that node's
	back     bool        // it has a memory of before, in one run
	lives    int
	Sent     int // requests that may have made it store a claim
	inbox    []Event

	Names     map[string]bool // that it has, beside those of the record and the number
	savedWith map[string]bool // at its last save
	TurnEnds  int64           // until then, by its clock,
	TurnOf    *Proc           // this process has the turn to repair it

	Keep *Proc // the pushes to it are kept back
	kept []model.Out
}

func newNode(w *World, i int) *Node {
	n := &Node{World: w, Index: i, Slow: 1, Model: model.New(w.Guard)}
	n.Clock = newNodeClock(n)
	n.Model.Off, n.Model.Portion = w.Off, w.Portion
	n.Model.Configure(w.Guard, w.Retention)
	n.Names = maps.Clone(w.Listed)
	if w.Bootstrap {
		n.Model.Bootstrap(0, n.Incarnation())
	}
	return n
}

// Millis is what the node's clock shows, in milliseconds.
func (n *Node) Millis() int64 { return n.Clock.Millis(n.World.Now) }

// Incarnation is the marker that the node's present life would be given.
func (n *Node) Incarnation() protocol.Incarnation {
	return protocol.Incarnation(1000*(n.Index+1) + n.lives)
}

// Delay is how long a message from or to the node takes.
func (n *Node) Delay() time.Duration {
	w := n.World
	d := w.Delay + time.Duration(w.RNG.Int64N(int64(w.Jitter)+1))
	if w.Tail > 0 && w.RNG.IntN(40) == 0 {
		d += time.Duration(w.RNG.Int64N(int64(w.Tail)))
	}
	return d * time.Duration(n.Slow)
}

// Data is what the node keeps of a name, counted from 0. The first one is that
// of the record, of the number of permits and of other Redlock clients, too.
func (n *Node) Data(lock int) *model.Name { return n.Model.Name(LockNames[lock]) }

// Data is what the node keeps of the name that the participant claims.
func (t *Participant) Data(n *Node) *model.Name {
	if t.Register != nil {
		return n.Model.Name(t.Register.Name)
	}
	return n.Data(t.Lock)
}

// LockNames are the names that participants claim.
var LockNames = [...]string{"", "second", "third", "fourth"}

// BeginIncarnation has a node without a marker begin an incarnation, in a world
// without sets. In a set a member gets its place back by the word of others.
func (n *Node) BeginIncarnation() {
	if _, marked := n.Model.Incarnation(); !marked && n.World.Decisions.decided == nil {
		n.Model.Mark(n.Millis(), n.Incarnation())
	}
}

func (n *Node) handle(m *Message, late bool) protocol.Answer {
	w := n.World
	n.Model.Count(m.stamp)
	n.BeginIncarnation()
	if m.Req.Op == protocol.OpJoin || m.Req.Op == protocol.OpSettle {
		n.Sent++
	}
	data := n.Data(0)
	if m.att != nil {
		data = m.att.Part.Data(n)
	}
	if m.inq != nil && m.inq.name != nil {
		data = n.Model.Name(m.inq.name.Name)
	}
	if n.Lie != nil {
		n.Model.Off |= model.SetRefuse
	}
	a, outs := data.Handle(n.Millis(), m.terms, m.Link.Proc.Name, m.Req)
	a.Clock = n.Clock.Micros(w.Now)
	if a.Status != protocol.OK || a.Sum != 0 || a.Limit != 0 { // such an answer is not a text
		a.Clock -= a.Clock % 1000
	}
	if m.inq != nil && m.inq.name != nil && m.Req.Op != protocol.OpRead {
		w.Decisions.registered(m.inq.name.Name)
	}
	if m.att != nil && w.Locks > 0 && m.att.Part.Register == nil {
		w.Judge.Fenced(m.att.Part.Lock, data.Fence())
	}
	if w.Trace != nil {
		when := ""
		if late {
			when = " (late)"
		}
		if m.inq != nil {
			w.Log("node %d: %v %v%s -> %s", n.Index, m.inq, m.Req.Op, when, AnswerName(m.Req, a))
		} else {
			w.Log("node %d: %v %v %s%s -> %s", n.Index, m.att, m.Req.Op,
				TicketName(m.Req.Ticket), when, AnswerName(m.Req, a))
		}
	}
	for _, o := range outs {
		n.Push(o)
	}
	return a
}

// Push carries a push to its owner, or not.
func (n *Node) Push(o model.Out) {
	w := n.World
	p := w.owner(o.Owner)
	if n.Keep == p {
		n.kept = append(n.kept, o)
		return
	}
	l := p.To(n)
	if l.PushCut {
		w.Log("node %d: push %v to %s is lost", n.Index, o.Push.ID, p.Name)
		return
	}
	at := w.Now.Add(n.Delay())
	if !w.Clean && w.LatePush > 0 && w.RNG.IntN(w.LatePush) == 0 {
		at = at.Add(time.Duration(w.RNG.Int64N(int64(w.Lag))))
	}
	leapt := n.Clock.Wrong
	w.send(Event{At: at, Kind: evPush, Proc: p, Gen: p.Epoch, M: &Message{Link: l, push: &o.Push}, fn: func() {
		if l.member() && l.judgePush(&o.Push, leapt) {
			p.push(l.No, o.Push)
		}
	}})
}

// EachLink calls f with each link that leads to the node.
func (n *Node) EachLink(f func(l *Link)) {
	for _, p := range n.World.Procs {
		for _, l := range p.Links {
			if l.Node == n {
				f(l)
			}
		}
	}
}

// inspect is what a client does on a new connection: INFO tells that the server
// has just started, so the client marks it. So it does if the guard time began
// by a time that has not come yet.
func (n *Node) inspect(p *Proc) {
	if _, marked := n.Model.Incarnation(); !marked && p.Follower.Members != nil {
		n.Unmarked, n.replica = false, false
	} else if n.Unmarked || n.replica || n.Model.Recovering(n.Millis()) > n.Model.Guard() {
		n.mark()
	}
}

// beyondDoubt: the node has begun an incarnation, so what was wrong with its
// memory and its clock before is known.
func (n *Node) beyondDoubt() {
	n.Unmarked, n.Clock.jumped, n.replica, n.back = false, false, false, false
}

// mark begins a new incarnation.
func (n *Node) mark() {
	n.beyondDoubt()
	n.lives++
	n.Model.Mark(n.Millis(), n.Incarnation())
	n.World.Judge.Lost()
}

// Address is what a process dials to reach the node, and the set records: of
// two addresses the first that it does.
func (n *Node) Address() string {
	if c := n.World.Decisions.Latest(); n.Second != "" && c != nil && c.Place(n.first()) < 0 &&
		c.Place(n.Second) >= 0 {
		return n.Second
	}
	return n.first()
}

func (n *Node) first() string {
	if n.Addr != "" {
		return n.Addr
	}
	return fmt.Sprintf("n%d", n.Index)
}

// leadHere returns the addresses by which a process reaches the node, one that
// is outside only by the second.
func (n *Node) leadHere(outside bool) (addrs []string) {
	if !outside && !n.Shut {
		addrs = append(addrs, n.first())
	}
	if n.Second != "" {
		addrs = append(addrs, n.Second)
	}
	return addrs
}

func Addresses(nodes []*Node) (addrs []string) {
	for _, n := range nodes {
		addrs = append(addrs, n.Address())
	}
	return addrs
}

// WouldPush: another claim's request is all it takes for f to be first here.
func (n *Node) WouldPush(f *Participant) bool {
	for i, c := range n.Data(0).Claims(n.Millis()) {
		if i == 0 && f.Att != nil {
			return c.ID == f.Att.Claim.State.ID && !c.Voted
		}
	}
	return false
}

// Deliver ends what keep began: the pushes that were kept back arrive.
func (n *Node) Deliver() {
	n.Keep = nil
	for _, o := range n.kept {
		n.Push(o)
	}
	n.kept = nil
}
