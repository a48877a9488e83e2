package nodeset_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// A small world for the Membership of clients: servers, which are reference
// nodes with their registers of what follows, and clients that carry out what
// their Membership wants.

// server is one server.
type server struct {
	*model.Node
	up     bool
	run    string                                 // of its process
	forged *nodeset.NodeSet                       // what it shows instead of what it keeps
	next   map[nodeset.Stamp]nodeset.RecordedNext // its registers
	whole  bool                                   // it has lost none of them
	file   nodeset.NodeSet                        // what it comes back with
	vote   vote
}

// vote is for one claim in one life of a server's data.
type vote struct {
	claim int
	inc   protocol.Incarnation
	until int64
}

type world struct {
	now     int64
	servers map[string]*server
	words   int // so many random words were made
	fault   string
	lines   []string
}

func newWorld() *world {
	return &world{servers: map[string]*server{}}
}

func (w *world) say(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// at returns the server at an address, which is blank at first.
func (w *world) at(addr string) *server {
	if w.servers[addr] == nil {
		w.servers[addr] = &server{Node: model.New(0), up: true, run: "run of " + addr, whole: true,
			next: map[nodeset.Stamp]nodeset.RecordedNext{}}
	}
	return w.servers[addr]
}

// fresh returns a number that no other random word has.
func (w *world) fresh() int {
	w.words++
	return w.words
}

// serve has servers keep a configuration as its members.
func (w *world) serve(c *nodeset.Configuration, addrs ...string) *world {
	for _, a := range addrs {
		w.keep(w.at(a), recordedAt(c, a))
	}
	return w
}

// restart has a server come back with a file.
func (w *world) restart(s *server, file nodeset.NodeSet) {
	w.keep(s, file)
	s.run = fmt.Sprint("run", w.fresh())
}

// keep has a server keep what another life of its data had.
func (w *world) keep(s *server, has nodeset.NodeSet) {
	s.Node = model.New(0)
	step := nodeset.RecordStep{Kind: nodeset.SetRestore, Identity: has.Identity,
		Config: has.Config, Ballot: has.Accepted}
	if has.Phase == nodeset.SetAccepted {
		s.Step(w.now, nodeset.RecordStep{Kind: nodeset.SetPromise, Ballot: has.Accepted}, 0)
		step.Kind = nodeset.SetAccept
	}
	if has.Config != nil {
		s.Step(w.now, step, protocol.Incarnation(w.fresh()))
		s.Step(w.now, nodeset.RecordStep{Kind: nodeset.SetPromise, Ballot: has.Promised}, 0)
	}
}

// lose has a server lose its data.
func (w *world) lose(addrs ...string) *world {
	for _, a := range addrs {
		s := w.at(a)
		w.keep(s, nodeset.NodeSet{})
		s.next, s.whole, s.vote = map[nodeset.Stamp]nodeset.RecordedNext{}, false, vote{}
	}
	return w
}

// shows returns what a server answers with.
func (s *server) shows() nodeset.NodeSet {
	if s.forged != nil {
		return *s.forged
	}
	has := s.Set()
	has.Run = s.run
	return has
}

// carryOut has a server carry out a step.
func (w *world) carryOut(s *server, x nodeset.RecordStep) nodeset.NodeSet {
	if s.forged != nil {
		return *s.forged
	}
	x.Life = fmt.Sprint("life", w.fresh())
	inc := protocol.Incarnation(w.fresh())
	was := s.Stamp()
	got := s.Step(w.now, x, inc)
	if now, _ := s.Incarnation(); now == inc && x.Kind == nodeset.SetRestore || x.Enters() && was != s.Stamp() {
		s.whole = false
	}
	got.Run = s.run
	return got
}

func (s *server) Stamp() nodeset.Stamp {
	n := s.Set()
	return n.Stamp()
}

// party is a client.
type party struct {
	*nodeset.Membership
	w       *world
	conns   map[int]*server
	asks    []nodeset.SetAction // that have not been answered yet
	begins  int                 // connections that have begun
	dialled map[string]bool
}

func (w *world) start(list ...string) *party {
	return &party{Membership: nodeset.NewMembership(list), w: w,
		conns: map[int]*server{}, dialled: map[string]bool{}}
}

// drop ends a connection.
func (p *party) drop(i int) {
	if p.conns[i] != nil {
		delete(p.conns, i)
		p.Down(i)
	}
}

// act does what the client wants done.
func (p *party) act() {
	for len(p.Out) > 0 {
		a := p.Out[0]
		p.Out = p.Out[1:]
		switch s := p.conns[a.Node]; {
		case a.Reconnect, a.Cease:
			p.drop(a.Node)
		case a.Begin, s == nil || !s.up:
		case a.Ask > 0:
			p.asks = append(p.asks, a)
		default:
			has := p.w.carryOut(s, a.RecordStep)
			p.w.say("  %v %s at %d: %s", a.Kind, a.Identity, a.Node, has.Stamp())
			if a.Kind == nodeset.SetLife {
				p.HandleLife(a.Node, has)
			}
		}
	}
}

// answer has a node answer a question.
func (p *party) answer() {
	a := p.asks[0]
	p.asks = p.asks[1:]
	if s := p.conns[a.Node]; s != nil && s.up {
		next := s.next[p.Stamp()]
		next.Of = p.Stamp()
		p.HandleReport(a.Node, a.Ask, s.shows(), next)
		p.act()
	}
}

// numbers returns the connections that the client wants.
func (p *party) numbers() (all []int) {
	for i := range nodeset.Seed + len(p.List()) {
		if p.Wants(i) {
			all = append(all, i)
		}
	}
	return all
}

// connect has a connection begin.
func (p *party) connect(i int) bool {
	s := p.w.at(p.Addr(i))
	if p.conns[i] != nil || !p.Wants(i) || !s.up {
		return false
	}
	p.begins++
	p.dialled[p.Addr(i)] = true
	p.conns[i] = s
	has := s.shows()
	v := p.Met(i, has)
	p.w.say("%p meets %d: %q of %s: fault %d", p, i, has.Identity, has.Stamp(), v.Fault)
	p.act()
	if v.Fault == nodeset.SetForeign { // the handshake fails, each time
		p.drop(i)
		p.act()
		return false
	}
	if p.conns[i] != nil {
		p.Up(i)
		p.act()
	}
	return true
}

// settle has the client do what there is to do. It must come to an end.
func (p *party) settle(t assert.TestingT) *party {
	p.act()
	for begins := p.begins; p.begins < begins+200; {
		busy := len(p.asks) > 0
		if busy {
			p.answer()
		}
		for _, i := range p.numbers() {
			busy = p.connect(i) || busy
		}
		if !busy {
			return p
		}
	}
	t.Errorf("the client connects again and again:\n%v", p.w.lines[max(0, len(p.w.lines)-20):])
	return p
}

// votes returns the members that the client uses.
func (p *party) votes() (addrs []string) {
	for i := range nodeset.Seed {
		if p.conns[i] != nil && p.Verdict(i).Fault == nodeset.SetFits {
			addrs = append(addrs, p.Addr(i))
		}
	}
	return addrs
}

// fault returns what a client makes of the server at an address.
func (p *party) fault(addr string) nodeset.SetFault {
	for _, i := range p.numbers() {
		if p.Addr(i) == addr {
			return p.Verdict(i).Fault
		}
	}
	return nodeset.SetUnknown
}

// recording is a recording of a client, which waits until each step of its
// latest question is answered or lost.
type recording struct {
	*nodeset.Recording
	p       *party
	Out     []nodeset.RecordStep // neither answered nor lost yet
	steps   []nodeset.RecordStep
	answers []*nodeset.NodeSet
}

// recording has the client record what is due, up to a question. It returns nil
// if nothing is due.
func (p *party) recording(ready bool, until nodeset.RecordKind) *recording {
	ballot := func(nodeset.Ballot) nodeset.Ballot {
		return nodeset.NewBallot(time.UnixMilli(0x19a00000000), uint32(p.w.fresh()), "")
	}
	identity := func() string { return fmt.Sprint("id", p.w.fresh()) }
	r, steps := p.Recorder.Record(ballot,
		nodeset.Shared{Guard: time.Second, Retention: time.Second}, ready, identity)
	if r == nil {
		return nil
	}
	u := &recording{Recording: r, p: p}
	for u.ask(steps); len(u.Out) > 0 && u.Out[0].Kind < until; {
		u.step()
	}
	return u
}

func (u *recording) ask(steps []nodeset.RecordStep) {
	u.steps, u.Out, u.answers = steps, slices.Clone(steps), make([]*nodeset.NodeSet, len(steps))
}

// step has the node of the next step answer, unless it cannot be reached.
func (u *recording) step() {
	x := u.Out[0]
	if s := u.p.conns[x.Node]; s != nil && s.up {
		u.answer(x, u.p.w.carryOut(s, x))
	} else {
		u.lose()
	}
}

func (u *recording) answer(x nodeset.RecordStep, has nodeset.NodeSet) {
	u.answers[slices.IndexFunc(u.steps, func(s nodeset.RecordStep) bool { return s.Node == x.Node })] = &has
	u.lose()
}

// lose has the answer to the next step be lost, if there is none yet.
func (u *recording) lose() {
	if u.Out = u.Out[1:]; len(u.Out) == 0 {
		u.ask(u.p.Next(u.answers))
	}
}

// put writes what follows a configuration to servers.
func (w *world) put(of, next *nodeset.Configuration, version uint64, addrs ...string) *world {
	for _, a := range addrs {
		w.at(a).next[of.Stamp] = nodeset.RecordedNext{Of: of.Stamp,
			Version: protocol.Version{Seq: version}, Config: next}
	}
	return w
}

// repair brings a server what others have recorded.
func (w *world) repair(s *server, c *nodeset.Configuration) {
	whole := 0
	for _, m := range c.Members {
		if o := w.at(m.Addr); m.Role != nodeset.Enters && o.whole && o.up && o.Set().Identity == m.Identity {
			whole++
			for of, next := range o.next {
				if next.Version.Compare(s.next[of].Version) > 0 {
					s.next[of] = next
				}
			}
		}
	}
	s.whole = s.whole || 2*whole > len(deciders(c))
}
