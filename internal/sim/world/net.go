package world

import (
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
)

// The two directions of a link.
const (
	Requests = iota
	Answers
)

// about is what a message is about.
type about uint8

const (
	claims  about = iota // or records
	Hello                // how a connection begins: the node's incarnation, and its time
	theTime              // the node's
	// The node shall begin a new incarnation if it still has the one of
	// req.Ticket; 0: if its marker is of another run.
	thatMark
	repairs // a question of a repair
	moves   // a step of the register of the node's set
	theSet  // what the node keeps of its set
)

func (a about) String() string {
	return [...]string{"claims", "hello", "time", "mark", "repairing", "move", "set"}[a]
}

// Message is one request on its way, and then its answer.
type Message struct {
	att      *Attempt    // whose request it is, or
	inq      *RegisterOp // which register operation's
	Link     *Link
	terms    protocol.Terms // as they were when it was sent
	refused  bool           // by the node
	forNow   bool           // and not for good
	Req      protocol.Request
	ans      protocol.Answer
	Gen      uint32 // the connection that carries it
	stamp    nodeset.Stamp
	about    about     // nothing else: what it is, if it is no claim's nor a register operation's
	question *question // of a repair
	step     nodeset.RecordStep
	kept     func(has *nodeset.NodeSet) // takes the answer to step, nil if it is lost
	of       nodeset.Stamp              // of a question about the set: what follows this one
	next     nodeset.RecordedNext       // the answer to that
	leapt    time.Duration              // by how much the node's clock had jumped when it answered
	try      uint32                     // of a NodeMark, or the number of a question about the set
	set      nodeset.NodeSet            // the answer to that, or to step
	sent     course.Moment              // on that connection
	expires  protocol.Time              // of a leave: when the lease it ends has ended by itself

	silent bool // it has failed, and the claim does not hear so in time

	push *protocol.Push // nothing else: a push
	from string         // in traces: whose message it is,
	no   int            // and which one of those that are alike; see names
}

// shared is what the claims share whose name the message is about.
func (m *Message) shared() *process.Name {
	if m.att != nil {
		return m.att.Part.shared()
	}
	if m.inq != nil && m.inq.name != nil {
		return m.inq.name
	}
	return m.Link.Proc.names[0]
}

// Link is a process's connection to a node: ordered in each direction, and what
// is on it when it breaks may still arrive, twice even. Pushes come on a
// connection of their own, unordered here.
type Link struct {
	Proc  *Proc
	Node  *Node
	Index int    // of the node
	No    int    // what the connection counts as: see number
	at    string // the address, if it is not the node's own

	Up         bool // it carries claims
	open       bool // it carries steps of the set's register, and questions about it
	ending     bool // see tend
	Gen        uint32
	pause      time.Duration        // before the node is judged again; 0: it counts as a member
	known      protocol.Time        // since when the process knows the node's incarnation
	leapt      time.Duration        // by how much the node's clock had jumped when the process last heard of it
	votes      protocol.Incarnation // that the node voted with last
	met        bool                 // by the reply that is being judged; before that reply
	bounded    bool                 // the bounds of its clock were known,
	width      time.Duration        // and so wide
	last       [2]course.Moment     // nothing arrives before what was sent earlier
	stalled    [2]bool              // a partition in one direction: messages wait
	waiting    [2][]*Message        // for the partition's end
	unanswered []*Message
	leaves     []*Message // kept for the next connection: "leaves must not be lost"
	PushCut    bool

	backlog process.Backlog[*Message] // what the node has no room for yet
	pending int                       // commands without an answer
}

// transfer sends a message, or does what becomes of it without a connection: a
// leave is kept until a connection takes it or its lease has ended, everything
// else fails at once.
func (l *Link) transfer(m *Message) {
	switch {
	case l.Up, l.open && (m.about == moves || m.about == theSet):
		l.transmit(m)
	case m.Req.Op == protocol.OpLeave:
		l.leaves = append(l.leaves, m)
	case m.about == claims:
		l.failed(m)
	case m.kept != nil:
		m.kept(nil)
	}
}

// failed has a message fail. Where failures are silent, its claim finds out by
// itself.
func (l *Link) failed(m *Message) {
	w := l.Proc.World
	m.silent = !w.Eager
	w.send(Event{At: w.Now + 1, Kind: evFail, Proc: l.Proc, Gen: l.Proc.Epoch, M: m})
}

func (l *Link) transmit(m *Message) {
	m.Gen, m.sent, m.stamp = l.Gen, l.Proc.World.Now, l.Proc.Follower.stamp()
	if m.about == claims || m.about == moves {
		l.unanswered = append(l.unanswered, m)
	}
	if m.about == claims {
		l.pending++
	}
	l.forward(Requests, m)
}

// forward moves a message one step: to the node, or back to the process.
func (l *Link) forward(dir int, m *Message) {
	w := l.Proc.World
	if l.stalled[dir] && w.Wire == nil {
		l.waiting[dir] = append(l.waiting[dir], m)
		return
	}
	at := w.Now.Add(l.Node.Delay())
	if !w.Overtake || m.Req.Op != protocol.OpLeave || dir != Requests {
		at = max(at, l.last[dir])
		l.last[dir] = at
	}
	if dir == Requests {
		w.send(Event{At: at, Kind: EvRequest, M: m})
	} else {
		w.send(Event{At: at, Kind: EvAnswer, Proc: l.Proc, Gen: l.Proc.Epoch, M: m})
	}
}

// Snap breaks the connection. What was on it is lost, or arrives late, or
// arrived and does so once more.
func (l *Link) Snap() {
	if !l.Up && !l.open {
		return
	}
	w, was := l.Proc.World, l.Up
	w.Tape.Note("break %s>%d", l.Proc.Label, l.Index+1)
	w.Log("link %s-%d breaks", l.Proc.Name, l.Node.Index)
	l.Up, l.open = false, false
	if l.Proc.Follower.Members != nil {
		l.Proc.Follower.Members.Down(l.No)
	}
	l.Gen++
	for _, m := range l.unanswered {
		if w.Wire != nil {
			l.arriveLate(m)
		} else if w.LateMessages {
			for range w.RNG.IntN(3) {
				l.arriveLate(m)
			}
		}
		switch {
		case m.kept != nil:
			l.Proc.Later(1, func() { m.kept(nil) })
		case m.about != claims:
		case m.Req.Op == protocol.OpLeave:
			l.leaves = append(l.leaves, m)
		default:
			l.failed(m)
		}
	}
	if l.Proc.Alive {
		if was {
			l.Proc.CarryOut(l.Proc.Client.Down(l.Proc.Now(), l.No))
		}
		l.Proc.Follower.regroupLater()
	}
	l.unanswered = nil
	if !w.Hoard {
		l.pending = 0
	}
	l.waiting = [2][]*Message{}
	if w.Wire != nil {
		return
	}
	l.PushCut = l.PushCut || w.RNG.IntN(2) == 0
	w.At(w.Around(w.NodeTimeout/4), l.Connect)
}

// arriveLate has a message of a broken connection arrive after all.
func (l *Link) arriveLate(m *Message) {
	w := l.Proc.World
	if w.Wire != nil {
		w.send(Event{Kind: EvLate, M: m})
		return
	}
	d := [...]time.Duration{w.Delay * 4, w.TTL, 2 * w.Guard}[w.RNG.IntN(3)]
	w.send(Event{At: w.Now.Add(time.Duration(w.RNG.Int64N(int64(d)))), Kind: EvLate, M: m})
}

// Connect opens a connection if one can be had; the event that makes one
// possible calls it again.
func (l *Link) Connect() {
	defer l.pump()
	if l.Up || l.open || l.No < 0 || l.No != l.number() || l.Node.Down || l.Node.Paused || !l.Proc.Alive ||
		l.Proc.Paused || l.stalled[Requests] || l.stalled[Answers] {
		return
	}
	w := l.Proc.World
	if l.Node.Clock.Unsettled() && !l.timed() {
		// A process that has not heard the time before cannot see the jump:
		// that it does not come just then is more than the protocol promises.
		w.At(w.TTL/4, l.Connect)
		return
	}
	w.Tape.Note("connect %s>%d", l.Proc.Label, l.Index+1)
	l.Node.inspect(l.Proc)
	l.reach()
	l.open, l.last = true, [2]course.Moment{w.Now, w.Now}
	l.Up = l.meet()
	if l.Proc.Follower.Members != nil {
		l.Proc.Follower.Members.Up(l.No)
		l.Proc.Follower.regroupLater()
	}
	if !l.Up {
		l.again()
		return
	}
	w.Log("link %s-%d is up", l.Proc.Name, l.Index)
	l.PushCut, l.pause = false, 0
	l.Ask(Hello, 0)
	leaves := l.leaves
	l.leaves = nil
	for _, m := range leaves {
		if l.Proc.Now() < m.expires {
			again := *m // what was sent on the previous connection keeps its Gen, and so is void
			l.transmit(&again)
		}
	}
}

// timed reports whether the process has heard the time of the node's present
// incarnation. What it knows of an earlier one ends when the node shows the
// present one: seed 1300013921, recorded.
func (l *Link) timed() bool {
	if !l.member() {
		return true
	}
	at, _ := l.Proc.Client.Bounds(l.Proc.Now(), l.No)
	inc, _ := l.Node.Model.Incarnation()
	return at > 0 && l.votes == inc
}

// again has the server be judged again after a while, as the runtime does: it
// counts as no member.
func (l *Link) again() {
	w, p, gen := l.Proc.World, l.Proc, l.Gen
	l.pause = nodeset.JudgePause(l.pause, w.NodeTimeout)
	p.Later(l.pause, func() {
		if l.Gen == gen && l.open && !l.Up && !w.over() {
			p.Follower.Members.JudgeAgain(l.No)
			p.Follower.Regroup()
		}
	})
}

// Tell has the claims ask again: while the connection for commands or pushes
// was away they may have missed something.
func (l *Link) Tell() {
	w := l.Proc.World
	w.send(Event{At: w.Now.Add(w.Delay), Kind: EvUp, Proc: l.Proc, Gen: l.Proc.Epoch,
		M: &Message{Link: l, Gen: l.Gen, Req: protocol.Request{Node: l.No}}})
}

// Cut stops the traffic in the given directions.
func (l *Link) Cut(dirs ...int) {
	for _, d := range dirs {
		l.stalled[d] = true
		l.Proc.World.Tape.Note("cut %s>%d %s", l.Proc.Label, l.Index+1, [...]string{"requests", "answers"}[d])
		l.Proc.World.Log("link %s-%d: %s held up", l.Proc.Name, l.Node.Index, [...]string{"requests", "answers"}[d])
	}
}

// Heal ends a partition: what was held up goes on, or the connection turns out
// to be broken.
func (l *Link) Heal(broken bool) {
	l.Proc.World.Tape.Note("heal %s>%d%s", l.Proc.Label, l.Index+1, map[bool]string{true: " broken"}[broken])
	defer l.Proc.World.Tape.Within()()
	if was := l.stalled; was[Requests] || was[Answers] {
		l.Proc.World.Log("link %s-%d heals", l.Proc.Name, l.Node.Index)
		if broken {
			l.Snap()
		}
	}
	l.stalled = [2]bool{}
	waiting := l.waiting
	l.waiting = [2][]*Message{}
	for dir, ms := range waiting {
		for _, m := range ms {
			l.forward(dir, m)
		}
	}
	l.Connect()
}

// waits is for how long the oldest request has been unanswered.
func (l *Link) waits() time.Duration {
	if len(l.unanswered) == 0 {
		return 0
	}
	return time.Duration(l.Proc.World.Now - l.unanswered[0].sent)
}
