package sim

import (
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// The two directions of a link.
const (
	requests = iota
	answers
)

// message is one request on its way, and then its answer.
type message struct {
	att     *attempt    // whose request it is, or
	inq     *registerOp // which register operation's
	link    *link
	terms   protocol.Terms // as they were when it was sent
	refused bool           // by the node
	forNow  bool           // and not for good
	req     protocol.Request
	ans     protocol.Answer
	gen     uint32 // the connection that carries it
	stamp   nodeset.Stamp
	about   about       // nothing else: what it is, if it is no claim's nor a register operation's
	task    *repairTask // a step of a repair
	step    nodeset.RecordStep
	kept    func(has nodeset.NodeSet) // takes the answer to step
	of      nodeset.Stamp             // of a question about the set: what follows this one
	next    nodeset.RecordedNext      // the answer to that
	leapt   time.Duration             // by how much the node's clock had jumped when it answered
	try     uint32                    // of a NodeMark, or the number of a question about the set
	set     nodeset.NodeSet           // the answer to that, or to step
	sent    moment                    // on that connection
	expires protocol.Time             // of a leave: when the lease it ends has ended by itself

	silent bool // it has failed, and the claim does not hear so in time

	push *protocol.Push // nothing else: a push
	from string         // in traces: whose message it is,
	no   int            // and which one of those that are alike; see names
}

// shared is what the claims share whose name the message is about.
func (m *message) shared() *process.Name {
	if m.att != nil {
		return m.att.part.shared()
	}
	if m.inq != nil && m.inq.name != nil {
		return m.inq.name
	}
	return m.link.proc.names[0]
}

// link is a process's connection to a node: ordered in each direction, and what
// is on it when it breaks may still arrive, twice even. Pushes come on a
// connection of their own, unordered here.
type link struct {
	proc *proc
	node *node
	idx  int    // of the node
	no   int    // what the connection counts as: see number
	at   string // the address, if it is not the node's own

	up         bool // it carries claims
	open       bool // it carries steps of the set's register, and questions about it
	ending     bool // see tend
	gen        uint32
	known      protocol.Time        // since when the process knows the node's incarnation
	leapt      time.Duration        // by how much the node's clock had jumped when the process last heard of it
	votes      protocol.Incarnation // that the node voted with last
	met        bool                 // by the reply that is being judged; before that reply
	bounded    bool                 // the bounds of its clock were known,
	width      time.Duration        // and so wide
	last       [2]moment            // nothing arrives before what was sent earlier
	stalled    [2]bool              // a partition in one direction: messages wait
	waiting    [2][]*message        // for the partition's end
	unanswered []*message
	leaves     []*message // kept for the next connection: "leaves must not be lost"
	pushCut    bool

	backlog process.Backlog[*message] // what the node has no room for yet
	pending int                       // commands without an answer
}

// transfer sends a message, or does what becomes of it without a connection: a
// leave is kept until a connection takes it or its lease has ended, everything
// else fails at once.
func (l *link) transfer(m *message) {
	switch {
	case l.up, l.open && (m.about == moves || m.about == theSet):
		l.transmit(m)
	case m.req.Op == protocol.OpLeave:
		l.leaves = append(l.leaves, m)
	case m.about == claims:
		l.failed(m)
	}
}

// failed has a message fail. Where failures are silent, its claim finds out by
// itself.
func (l *link) failed(m *message) {
	w := l.proc.w
	m.silent = !w.eager
	w.send(event{at: w.now + 1, kind: evFail, proc: l.proc, gen: l.proc.epoch, m: m})
}

func (l *link) transmit(m *message) {
	m.gen, m.sent, m.stamp = l.gen, l.proc.w.now, l.proc.stamp()
	if m.about == claims || m.about == moves {
		l.unanswered = append(l.unanswered, m)
	}
	if m.about == claims {
		l.pending++
	}
	l.forward(requests, m)
}

// forward moves a message one step: to the node, or back to the process.
func (l *link) forward(dir int, m *message) {
	w := l.proc.w
	if l.stalled[dir] && w.wire == nil {
		l.waiting[dir] = append(l.waiting[dir], m)
		return
	}
	at := w.now.add(l.node.delay())
	if !w.overtake || m.req.Op != protocol.OpLeave || dir != requests {
		at = max(at, l.last[dir])
		l.last[dir] = at
	}
	if dir == requests {
		w.send(event{at: at, kind: evRequest, m: m})
	} else {
		w.send(event{at: at, kind: evAnswer, proc: l.proc, gen: l.proc.epoch, m: m})
	}
}

// snap breaks the connection. What was on it is lost, or arrives late, or
// arrived and does so once more.
func (l *link) snap() {
	if !l.up && !l.open {
		return
	}
	w, was := l.proc.w, l.up
	w.tape.note("break %s>%d", l.proc.label, l.idx+1)
	w.log("link %s-%d breaks", l.proc.name, l.node.idx)
	l.up, l.open = false, false
	if l.proc.members != nil {
		l.proc.members.Down(l.no)
	}
	l.gen++
	for _, m := range l.unanswered {
		if w.wire != nil {
			l.arriveLate(m)
		} else if w.lateMessages {
			for range w.rng.IntN(3) {
				l.arriveLate(m)
			}
		}
		switch {
		case m.about != claims:
		case m.req.Op == protocol.OpLeave:
			l.leaves = append(l.leaves, m)
		default:
			l.failed(m)
		}
	}
	if l.proc.alive {
		if was {
			l.proc.carryOut(l.proc.client.Down(l.proc.now(), l.no))
		}
		l.proc.regroupLater()
	}
	l.unanswered = nil
	if !w.hoard {
		l.pending = 0
	}
	l.waiting = [2][]*message{}
	if w.wire != nil {
		return
	}
	l.pushCut = l.pushCut || w.rng.IntN(2) == 0
	w.at(w.around(w.nodeTimeout/4), l.connect)
}

// arriveLate has a message of a broken connection arrive after all.
func (l *link) arriveLate(m *message) {
	w := l.proc.w
	if w.wire != nil {
		w.send(event{kind: evLate, m: m})
		return
	}
	d := [...]time.Duration{w.delay * 4, w.ttl, 2 * w.guard}[w.rng.IntN(3)]
	w.send(event{at: w.now.add(time.Duration(w.rng.Int64N(int64(d)))), kind: evLate, m: m})
}

// connect opens a connection if one can be had; the event that makes one
// possible calls it again.
func (l *link) connect() {
	defer l.pump()
	if l.up || l.open || l.no < 0 || l.no != l.number() || l.node.down || l.node.paused || !l.proc.alive || l.proc.paused || l.stalled[requests] || l.stalled[answers] {
		return
	}
	w := l.proc.w
	if l.node.unsettled() && !l.timed() {
		// A process that has not heard the time before cannot see the jump:
		// that it does not come just then is more than the protocol promises.
		w.at(w.ttl/4, l.connect)
		return
	}
	w.tape.note("connect %s>%d", l.proc.label, l.idx+1)
	l.node.inspect(l.proc)
	l.reach()
	l.open, l.last = true, [2]moment{w.now, w.now}
	l.up = l.meet()
	if l.proc.members != nil {
		l.proc.members.Up(l.no)
		l.proc.regroupLater()
	}
	if !l.up {
		l.again()
		return
	}
	w.log("link %s-%d is up", l.proc.name, l.idx)
	l.pushCut = false
	l.ask(hello, 0)
	leaves := l.leaves
	l.leaves = nil
	for _, m := range leaves {
		if l.proc.local(w.now) < m.expires {
			l.transmit(m)
		}
	}
}

// timed reports whether the process has heard the time of the node's present
// incarnation. What it knows of an earlier one ends when the node shows the
// present one: seed 1300013921, recorded.
func (l *link) timed() bool {
	if !l.member() {
		return true
	}
	at, _ := l.proc.client.Bounds(l.proc.now(), l.no)
	inc, _ := l.node.model.Incarnation()
	return at > 0 && l.votes == inc
}

// again has the server be judged again after a while, as the runtime does: it
// counts as no member.
func (l *link) again() {
	w, p, gen := l.proc.w, l.proc, l.gen
	p.later(w.around(w.nodeTimeout), func() {
		if l.gen == gen && l.open && !l.up && !w.over() {
			p.members.Again(l.no)
			p.regroup()
		}
	})
}

// tell has the claims ask again: while the connection for commands or pushes
// was away they may have missed something.
func (l *link) tell() {
	w := l.proc.w
	w.send(event{at: w.now.add(w.delay), kind: evUp, proc: l.proc, gen: l.proc.epoch, m: &message{link: l, gen: l.gen, req: protocol.Request{Node: l.no}}})
}

// cut stops the traffic in the given directions.
func (l *link) cut(dirs ...int) {
	for _, d := range dirs {
		l.stalled[d] = true
		l.proc.w.tape.note("cut %s>%d %s", l.proc.label, l.idx+1, [...]string{"requests", "answers"}[d])
		l.proc.w.log("link %s-%d: %s held up", l.proc.name, l.node.idx, [...]string{"requests", "answers"}[d])
	}
}

// heal ends a partition: what was held up goes on, or the connection turns out
// to be broken.
func (l *link) heal(broken bool) {
	l.proc.w.tape.note("heal %s>%d%s", l.proc.label, l.idx+1, map[bool]string{true: " broken"}[broken])
	defer l.proc.w.tape.within()()
	if was := l.stalled; was[requests] || was[answers] {
		l.proc.w.log("link %s-%d heals", l.proc.name, l.node.idx)
		if broken {
			l.snap()
		}
	}
	l.stalled = [2]bool{}
	waiting := l.waiting
	l.waiting = [2][]*message{}
	for dir, ms := range waiting {
		for _, m := range ms {
			l.forward(dir, m)
		}
	}
	l.connect()
}

// state is how the connection stands. Each has much to do, so that Fanout
// defers nodes.
func (l *link) state() process.Link {
	s := process.Link{Up: l.up, Busy: true}
	if len(l.unanswered) > 0 {
		s.Waiting = time.Duration(l.proc.w.now - l.unanswered[0].sent)
	}
	return s
}

// wouldPush: another claim's request is all it takes for f to be first here.
func (n *node) wouldPush(f *participant) bool {
	for i, c := range n.model.Claims(n.millis(n.w.now)) {
		if i == 0 && f.att != nil {
			return c.ID == f.att.ID && !c.Voted
		}
	}
	return false
}

// deliver ends what keep began: the pushes that were kept back arrive.
func (n *node) deliver() {
	n.keep = nil
	for _, o := range n.kept {
		n.push(o)
	}
	n.kept = nil
}
