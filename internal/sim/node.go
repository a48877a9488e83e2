package sim

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
)

// node is a model.Node in the world.
type node struct {
	clock
	w     *world
	idx   int
	model *model.Node

	addr string        // if it was given another address
	lie  func() string // what it says of its set, if that is not what it keeps; it serves any request then

	slow     int // factor on delays
	down     bool
	gone     bool // stays down after the faults: at most a minority does
	paused   bool
	refuse   bool          // fails every request for good, as with a wrong password
	busy     bool          // fails every request for now, as while another program's script runs
	unmarked bool          // restarted with a memory that may be old, and no client has seen that yet
	saved    *model.Node   // what such a restart comes back with
	replica  bool          // it was another node's replica: its data and its marker are that node's
	back     bool          // it has a memory of before, in one run
	wrong    time.Duration // by how much its clock has jumped in all
	leapAt   moment        // of the last time
	jumped   bool          // since then the node has had no new incarnation
	righted  bool          // its clock was wrong, and was set right when the faults stopped
	setBack  time.Duration // of its clock: what was stored before ends so much later
	lives    int
	sent     int // requests that may have made it store a claim
	inbox    []event

	names     map[string]bool // that it has, beside those of the record and the number
	savedWith map[string]bool // at its last save
	looks     int             // at its marker
	turnEnds  int64           // until then, by its clock,
	turnOf    *proc           // this process has the turn to repair it

	keep *proc // the pushes to it are kept back
	kept []model.Out
}

func newNode(w *world, i int) *node {
	n := &node{w: w, idx: i, slow: 1, clock: newClock(w.rng, &w.setting), model: model.New(w.guard)}
	n.model.Off, n.model.Portion = w.off, w.portion
	n.model.Configure(w.guard, w.retention)
	n.names = maps.Clone(w.listed)
	n.atWall()
	if w.bootstrap {
		n.model.Bootstrap(0, n.incarnation())
	}
	return n
}

// atWall has the node's clock be a wall clock: near those of the others.
func (n *node) atWall() {
	off := int64(0)
	if s := int64(n.w.skew); s > 0 {
		off = n.clock.offset%(s+1) - s/2
	}
	n.clock.offset = int64(epoch)*1000 + off
}

// incarnation is the marker that the node's present life would be given.
func (n *node) incarnation() protocol.Incarnation {
	return protocol.Incarnation(1000*(n.idx+1) + n.lives)
}

// delay is how long a message from or to the node takes.
func (n *node) delay() time.Duration {
	w := n.w
	d := w.delay + time.Duration(w.rng.Int64N(int64(w.jitter)+1))
	if w.tail > 0 && w.rng.IntN(40) == 0 {
		d += time.Duration(w.rng.Int64N(int64(w.tail)))
	}
	return d * time.Duration(n.slow)
}

// data is what the node keeps of a name, counted from 0. The first one is that
// of the record, of the number of permits and of other Redlock clients, too.
func (n *node) data(lock int) *model.Node { return n.model.Name(lockNames[lock]) }

// data is what the node keeps of the name that the participant claims.
func (t *participant) data(n *node) *model.Node {
	if t.register != nil {
		return n.model.Name(t.register.Name)
	}
	return n.data(t.lock)
}

// lockNames are the names that participants claim.
var lockNames = [...]string{"", "second", "third", "fourth"}

// begins has a node without a marker begin an incarnation, in a world without
// sets. In a set a member gets its place back by the word of others.
func (n *node) begins() {
	if _, marked := n.model.Incarnation(); !marked && n.w.decided == nil {
		n.model.Mark(n.millis(n.w.now), n.incarnation())
	}
}

func (n *node) handle(m *message, late bool) protocol.Answer {
	w := n.w
	n.model.Count(m.stamp)
	n.begins()
	if m.req.Op == protocol.OpJoin || m.req.Op == protocol.OpSettle {
		n.sent++
	}
	data := n.model
	if m.att != nil {
		data = m.att.part.data(n)
	}
	if m.inq != nil && m.inq.name != nil {
		data = n.model.Name(m.inq.name.Name)
	}
	if n.lie != nil {
		n.model.Off |= model.SetRefuse
	}
	a, outs := data.Handle(n.millis(w.now), m.terms, m.link.proc.name, m.req)
	a.Clock = n.micros(w.now)
	if a.Status != protocol.OK || a.Sum != 0 || a.Limit != 0 { // such an answer is not a text
		a.Clock -= a.Clock % 1000
	}
	if m.inq != nil && m.inq.name != nil && m.req.Op != protocol.OpRead {
		w.registered(m.inq.name.Name)
	}
	if m.att != nil && w.locks > 0 && m.att.part.register == nil {
		c := w.of[m.att.part.lock]
		c.fence = max(c.fence, data.Fence())
	}
	if w.trace != nil {
		when := ""
		if late {
			when = " (late)"
		}
		if m.inq != nil {
			w.log("node %d: %v %v%s -> %s", n.idx, m.inq, m.req.Op, when, answerName(m.req, a))
		} else {
			w.log("node %d: %v %v %s%s -> %s", n.idx, m.att, m.req.Op, ticketName(m.req.Ticket), when, answerName(m.req, a))
		}
	}
	for _, o := range outs {
		n.push(o)
	}
	return a
}

// push carries a push to its owner, or not.
func (n *node) push(o model.Out) {
	w := n.w
	p := w.owner(o.Owner)
	if n.keep == p {
		n.kept = append(n.kept, o)
		return
	}
	l := p.to(n)
	if l.pushCut {
		w.log("node %d: push %v to %s is lost", n.idx, o.Push.ID, p.name)
		return
	}
	at := w.now.add(n.delay())
	if !w.clean && w.latePush > 0 && w.rng.IntN(w.latePush) == 0 {
		at = at.add(time.Duration(w.rng.Int64N(int64(w.lag))))
	}
	leapt := n.wrong
	w.send(event{at: at, kind: evPush, proc: p, gen: p.epoch, m: &message{link: l, push: &o.Push}, fn: func() {
		if l.member() && l.judgePush(&o.Push, leapt) {
			p.push(l.no, o.Push)
		}
	}})
}

// crash takes the node down, and every connection with it.
func (n *node) crash() {
	n.w.tape.note("crash %d", n.idx+1)
	defer n.w.tape.within()()
	n.w.log("node %d crashes", n.idx)
	n.w.stats.Restarts++
	n.down, n.paused = true, false
	n.inbox = nil
	n.eachLink((*link).snap)
}

// eachLink calls f with each link that leads to the node.
func (n *node) eachLink(f func(l *link)) {
	for _, p := range n.w.procs {
		for _, l := range p.links {
			if l.node == n {
				f(l)
			}
		}
	}
}

// restart brings it up with what it has in its memory.
func (n *node) restart() {
	n.w.tape.note("restart %d", n.idx+1)
	defer n.w.tape.within()()
	n.w.log("node %d is back", n.idx)
	n.down = false
	n.eachLink((*link).connect)
}

// forget loses the memory.
func (n *node) forget() {
	n.w.tape.note("forget %d", n.idx+1)
	defer n.w.tape.within()()
	n.w.log("node %d has lost its data", n.idx)
	n.lives++
	n.model.Forget()
	n.saved, n.unmarked, n.jumped, n.replica, n.back = nil, false, false, false, false
	n.names, n.turnEnds, n.turnOf = map[string]bool{}, 0, nil
	n.w.ledger.lost(n.w)
}

// copy has the node be another one's replica for a moment, and then a master
// again: it has the other's data, and its connections last.
func (n *node) copy(o *node) {
	n.w.tape.note("replica %d of %d", n.idx+1, o.idx+1)
	n.w.log("node %d was a replica of node %d", n.idx, o.idx)
	n.model = o.model.Clone()
	n.replica, n.unmarked, n.jumped = true, false, o.jumped
	n.w.ledger.lost(n.w)
}

// save writes the memory to the disk, as Redis does now and then.
func (n *node) save() {
	n.w.tape.note("save %d", n.idx+1)
	n.saved, n.savedWith = n.model.Clone(), maps.Clone(n.names)
}

// refuses has it refuse every request, for good or for now, or no more.
func (n *node) refuses(all, forNow bool) {
	if n.refuse != (all && !forNow) || n.busy != (all && forNow) {
		n.w.tape.note("refuse %d%s", n.idx+1, map[bool]string{!all: " no more", all && forNow: " for now"}[true])
	}
	n.refuse, n.busy = all && !forNow, all && forNow
}

// setPlain is another Redlock client's: it sets the redlock key if that is
// free.
func (n *node) setPlain(value string, lease time.Duration) bool {
	n.w.tape.note("key %d %v as %s", n.idx+1, lease, strings.ReplaceAll(value, " ", "-"))
	return n.model.SetPlain(n.millis(n.w.now), value, lease)
}

// delPlain deletes the redlock key if it has that value, or any if that is
// empty.
func (n *node) delPlain(value string) {
	n.w.tape.note("unkey %d %s", n.idx+1, strings.ReplaceAll(value, " ", "-"))
	n.model.DelPlain(n.millis(n.w.now), value)
}

// revert is a restart from the disk: the newest writes are gone, and the marker
// is not.
func (n *node) revert() {
	n.w.tape.note("revert %d", n.idx+1)
	defer n.w.tape.within()()
	if n.saved == nil {
		n.forget()
		return
	}
	n.w.log("node %d has lost what it did since its last save", n.idx)
	n.model, n.names = n.saved.Clone(), maps.Clone(n.savedWith)
	n.unmarked = !n.w.forgetful
	n.w.ledger.lost(n.w)
}

// comeBack has the memory of the last save come back in one run of the server.
// Its marker names that run.
func (n *node) comeBack() {
	n.w.tape.note("return %d", n.idx+1)
	n.w.log("node %d has what it had at its last save", n.idx)
	n.model, n.names = n.saved.Clone(), maps.Clone(n.savedWith)
	n.back = true
	n.w.ledger.lost(n.w)
}

// inspect is what a client does on a new connection: INFO tells that the server
// has just started, so the client marks it. So it does if the guard time began
// by a time that has not come yet.
func (n *node) inspect(p *proc) {
	if _, marked := n.model.Incarnation(); !marked && p.members != nil {
		n.unmarked, n.replica = false, false
	} else if n.unmarked || n.replica || n.model.Recovering(n.millis(n.w.now)) > n.model.Guard() {
		n.mark()
	}
}

// mark begins a new incarnation.
func (n *node) mark() {
	n.unmarked, n.jumped, n.replica, n.back = false, false, false, false
	n.lives++
	n.model.Mark(n.millis(n.w.now), n.incarnation())
	n.w.ledger.lost(n.w)
}

func (n *node) pause() {
	n.w.tape.note("stop %d", n.idx+1)
	defer n.w.tape.within()()
	n.w.log("node %d stops", n.idx)
	n.paused = true
}

// resume: everything that has queued up is handled now.
func (n *node) resume() {
	n.w.tape.note("go %d", n.idx+1)
	defer n.w.tape.within()()
	if !n.paused {
		return
	}
	n.w.log("node %d goes on", n.idx)
	n.paused = false
	inbox := n.inbox
	n.inbox = nil
	for _, e := range inbox {
		n.w.request(e)
	}
	n.eachLink((*link).connect)
}

// ticketName leaves out what all tickets have in common.
func ticketName(t protocol.Ticket) string {
	if t > epoch/2 && t < 2*epoch {
		return fmt.Sprintf("%+d", int64(t)-int64(epoch))
	}
	return strconv.FormatUint(uint64(t), 10)
}

func answerName(r protocol.Request, a protocol.Answer) string {
	if e := a.Record; e != nil {
		return fmt.Sprintf("%v %s promise %s whole=%t", a.Status, versionName(e.Version), versionName(e.Promise), e.CaughtUp)
	}
	if a.Status != protocol.OK || r.Op == protocol.OpLeave {
		return a.Status.String()
	}
	s := ticketName(a.Ticket)
	if a.Vote {
		s += " vote"
	}
	if a.HasTotals {
		s += fmt.Sprintf(" below=%d/%x", a.Sum, a.Digest>>36)
	}
	if a.Wait > 0 {
		s += " hint " + a.Wait.String()
	}
	return s
}

// address is what a process dials to reach the node.
func (n *node) address() string {
	if n.addr != "" {
		return n.addr
	}
	return fmt.Sprintf("n%d", n.idx)
}

func addresses(nodes []*node) (addrs []string) {
	for _, n := range nodes {
		addrs = append(addrs, n.address())
	}
	return addrs
}
