package sim

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// commands are what a line of a trace may be. CONTRIBUTING.md explains them in one table.
var commands map[string]func(p *player, a *args) error

func init() {
	commands = map[string]func(p *player, a *args) error{
		"claim": (*player).claim, "leave": holder("leave"), "renew": holder("renew"), "shrink": holder("shrink"),
		"mute": holder("mute"), "tick": holder("tick"),
		"open": recorder(protocol.OpOpen), "put": recorder(protocol.OpPut), "erase": recorder(protocol.OpPut), "read": recorder(protocol.OpRead),
		"repair": (*player).repair, "resize": (*player).resize, "forge": (*player).forge, "propose": (*player).propose,
		"process": (*player).process, "pause": (*player).pause, "resume": (*player).resume, "sleep": (*player).sleep,
		"kill": (*player).kill, "start": (*player).start,
		"hold": (*player).hold, "pass": (*player).pass, "deliver": (*player).deliver, "drop": (*player).drop,
		"repeat": (*player).repeat, "flight": (*player).flight, "break": (*player).snap, "connect": (*player).connect,
		"reach": (*player).reach, "ask": (*player).ask,
		"crash": (*player).crash, "restart": (*player).restart, "save": (*player).save, "stop": (*player).stop, "go": (*player).resumeNode,
		"refuse": (*player).refuse, "clock": (*player).clock, "key": (*player).key, "unkey": (*player).unkey,
		"forget": (*player).forget, "revert": (*player).revert, "replica": (*player).replica, "cut": (*player).cut, "heal": (*player).heal, "point": (*player).point,
		"wake": (*player).wake, "giveup": (*player).giveUp, "caughtup": (*player).caughtUp, "rival": (*player).rival,
		"advance": (*player).advance, "at": (*player).at, "show": (*player).show,
	}
}

// claim LABEL [try] [weight N] [defer NODES AFTER] [id HEX]
func (p *player) claim(a *args) error {
	label, try, weight := a.next(), false, uint64(1)
	if p.w.capacity == 1<<30 {
		weight = p.w.capacity // of a read-write lock: a writer
	}
	var s start
	for a.err == nil {
		switch {
		case a.take("try"):
			try = true
		case a.take("weight"):
			weight = uint64(a.number())
		case a.take("wall"):
			q := p.on.process(label)
			q.wall = a.duration()
		case a.take("reader"):
			weight = 1
		case a.take("defer"):
			for _, n := range a.numbers() {
				s.later |= 1 << (n - 1)
			}
			s.after = a.duration()
		case a.take("id"):
			b, err := hex.DecodeString(a.next())
			a.fail(err)
			copy(s.id[:], b)
			s.fixed = true
		case a.take("residue"):
			s.id[0], s.id[15], s.fixed = label[0], byte(a.number()), true
		default:
			p.on.process(label)
			p.x.next = s
			return p.on.claim(label, try, weight)
		}
	}
	return a.err
}

func holder(what string) func(p *player, a *args) error {
	return func(p *player, a *args) error {
		label, weight := a.next(), uint64(0)
		if what == "shrink" {
			weight = uint64(a.number())
		}
		if a.err != nil {
			return a.err
		}
		return p.on.hold(label, what, weight)
	}
}

func recorder(op protocol.Op) func(p *player, a *args) error {
	return func(p *player, a *args) error {
		label, value, seq := a.next(), "", -1
		erase := op == protocol.OpPut && (len(a.words) == 0 || a.words[0] == "seq")
		if op == protocol.OpPut && !erase {
			value = a.next()
		}
		if a.take("seq") {
			seq = a.number()
		}
		alive := a.take("alive")
		if a.err != nil {
			return a.err
		}
		return p.on.record(label, protocol.Inquiry{Op: op, Alive: alive, Stored: protocol.Stored{Value: []byte(value), Erased: erase}}, seq)
	}
}

// process LABEL [wall DURATION] [rate FACTOR] [settings 1/N]
func (p *player) process(a *args) error {
	q := p.on.process(a.next())
	for len(a.words) > 0 && a.err == nil {
		switch a.next() {
		case "wall":
			q.off = a.duration() - time.Second
			q.adjust()
		case "rate":
			_, err := fmt.Sscan(a.next(), &q.rate)
			a.fail(err)
		case "offset":
			_, err := fmt.Sscan(a.next(), &q.clock.offset)
			a.fail(err)
		case "settings":
			q.shorten(int(a.number()))
		default:
			return fmt.Errorf("process has no such option")
		}
	}
	if p.x.manual {
		p.on.meet(q)
	}
	return a.err
}

func (p *player) pause(a *args) error { p.on.process(a.next()).pause(); return a.err }

// resume LABEL [timers first]
func (p *player) resume(a *args) error {
	q := p.on.process(a.next())
	q.timersFirst = a.take("timers")
	q.resume()
	return a.err
}

// sleep LABEL DURATION [breaks]; with manual it ends by wake.
func (p *player) sleep(a *args) error {
	q, d := p.on.process(a.next()), time.Duration(0)
	if !p.x.manual {
		d = a.duration()
	}
	q.sleep(d, a.take("breaks"))
	return a.err
}

func (p *player) kill(a *args) error  { p.on.process(a.next()).crash(); return a.err }
func (p *player) start(a *args) error { p.on.process(a.next()).restart(); return a.err }

// pattern reads a pattern of messages.
func (a *args) pattern() (parcel, error) {
	q, rest, err := parse(a.words)
	a.words = rest
	return q, err
}

// hold PATTERN: what matches waits from now on.
func (p *player) hold(a *args) error {
	for len(a.words) > 0 {
		q, err := a.pattern()
		if err != nil {
			return err
		}
		p.x.holds = append(p.x.holds, q)
	}
	return nil
}

// pass [PATTERN]: what matches waits no more. Without a pattern nothing waits.
func (p *player) pass(a *args) error {
	if len(a.words) == 0 {
		p.x.holds = nil
		return nil
	}
	for len(a.words) > 0 {
		q, err := a.pattern()
		if err != nil {
			return err
		}
		kept := p.x.holds[:0]
		for _, h := range p.x.holds {
			if !q.covers(h) {
				kept = append(kept, h)
			}
		}
		if len(kept) == len(p.x.holds) {
			return fmt.Errorf("nothing is held as %v", q)
		}
		p.x.holds = kept
	}
	return nil
}

// deliver PATTERN: what is under way and matches arrives now.
func (p *player) deliver(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := p.x.find(q)
	switch {
	case err != nil && p.x.manual && (q.kind == evUp || q.kind == evDown):
		return p.notice(q)
	case err != nil && p.x.manual:
		return nil // with another rule set it may not have been sent
	case err != nil:
		return err
	}
	p.x.echo = !p.x.manual
	defer func() { p.x.echo = false }()
	if q.no > 0 || p.x.manual {
		at = at[:1]
	}
	for k, i := range at { // each delivery moves the others up
		p.x.deliver(i - k)
	}
	return nil
}

// drop PATTERN: what is under way and matches never arrives.
func (p *player) drop(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := p.x.find(q)
	for k, i := range at {
		p.x.flight = append(p.x.flight[:i-k:i-k], p.x.flight[i-k+1:]...)
	}
	return err
}

// repeat PATTERN: a request that is under way arrives a second time, later.
func (p *player) repeat(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := p.x.find(q)
	for _, i := range at {
		e := p.x.flight[i]
		e.kind = evGhost
		p.x.flight = append(p.x.flight, e)
	}
	return err
}

// flight: what is under way, but for questions about the time.
func (p *player) flight(*args) error {
	var s []string
	for _, e := range p.x.flight {
		if n := p.x.names.of(e); n.op != "time" && n.op != "hello" && n.op != "longest" {
			s = append(s, n.String())
		}
	}
	p.x.say("under way: %s", strings.Join(s, ", "))
	return nil
}

// link reads the two ends of a connection: e>1.
func (p *player) link(a *args) (*link, error) {
	q, err := a.pattern()
	if err != nil {
		return nil, err
	}
	n, err := p.node(q.to)
	if err != nil {
		return nil, err
	}
	return p.on.process(q.from).links[n.idx], nil
}

// node reads a node.
func (p *player) node(s string) (*node, error) {
	i := 0
	if _, err := fmt.Sscanf(s, "%d", &i); err != nil || i < 1 || i > len(p.w.nodes) {
		return nil, fmt.Errorf("%q is no node", s)
	}
	return p.w.nodes[i-1], nil
}

func (p *player) snap(a *args) error {
	l, err := p.link(a)
	if err == nil {
		l.snap()
	}
	return err
}

func (p *player) connect(a *args) error {
	l, err := p.link(a)
	if err == nil {
		if l.connect(); !l.up {
			p.x.say("%s>%d does not connect", l.proc.label, l.idx+1)
		}
	}
	return err
}

// reach LINK NODE: the address of LINK reaches the server of NODE from now on.
func (p *player) reach(a *args) error {
	l, err := p.link(a)
	if err != nil {
		return err
	}
	n, err := p.node(a.next())
	if err != nil {
		return err
	}
	l.snap()
	l.node = n
	if l.connect(); !l.up {
		p.x.say("%s>%d does not connect", l.proc.label, l.idx+1)
	}
	return nil
}

// ask LINK: the process asks for the node's time.
func (p *player) ask(a *args) error {
	l, err := p.link(a)
	if err == nil {
		l.askTime()
	}
	return err
}

// onNodes does something to the nodes that a command names.
func (p *player) onNodes(a *args, do func(n *node)) error {
	for _, i := range a.numbers() {
		n, err := p.node(fmt.Sprint(i))
		if err != nil {
			return err
		}
		do(n)
	}
	return a.err
}

func (p *player) crash(a *args) error { return p.onNodes(a, (*node).crash) }

// restart NODES [amnesia|old]: a node that runs crashes first.
func (p *player) restart(a *args) error {
	var ns []*node
	if err := p.onNodes(a, func(n *node) { ns = append(ns, n) }); err != nil {
		return err
	}
	amnesia, old := a.take("amnesia"), a.take("old")
	for _, n := range ns {
		if !n.down {
			n.crash()
		}
		switch {
		case amnesia:
			n.forget()
		case old:
			n.revert()
		}
		n.restart()
	}
	return nil
}

func (p *player) save(a *args) error       { return p.onNodes(a, (*node).save) }
func (p *player) stop(a *args) error       { return p.onNodes(a, (*node).pause) }
func (p *player) resumeNode(a *args) error { return p.onNodes(a, (*node).resume) }

// refuse NODES [no more]
func (p *player) refuse(a *args) error {
	var ns []*node
	err := p.onNodes(a, func(n *node) { ns = append(ns, n) })
	ends := a.take("no") && a.take("more")
	for _, n := range ns {
		n.refuse = !ends
	}
	return err
}

// clock NODES [by DURATION] [rate FACTOR]: the clock is set by so much, or runs faster.
func (p *player) clock(a *args) error {
	var ns []*node
	if err := p.onNodes(a, func(n *node) { ns = append(ns, n) }); err != nil {
		return err
	}
	by, rate, offset := time.Duration(0), 0.0, int64(0)
	for len(a.words) > 0 && a.err == nil {
		switch a.next() {
		case "by":
			by = a.duration()
		case "rate":
			_, err := fmt.Sscan(a.next(), &rate)
			a.fail(err)
		case "offset":
			_, err := fmt.Sscan(a.next(), &offset)
			a.fail(err)
		default:
			return fmt.Errorf("clock has no such option")
		}
	}
	for _, n := range ns {
		if by != 0 {
			n.jump(by)
		}
		if rate != 0 {
			n.rate = rate
		}
		if offset != 0 {
			n.clock.offset = offset
		}
	}
	return a.err
}

// key NODES [DURATION] [as VALUE]: another Redlock client sets the name's redlock key there.
// With a majority of the nodes it holds until the keys end; with manual, rival says so.
func (p *player) key(a *args) error {
	var ns []*node
	if err := p.onNodes(a, func(n *node) { ns = append(ns, n) }); err != nil {
		return err
	}
	lease, value := time.Duration(0), "rival"
	if len(a.words) > 0 && a.words[0] != "as" {
		lease = a.duration()
	}
	if a.take("as") {
		value = a.next()
	}
	r := p.theRival()
	if r.lease != lease {
		r.lease, r.set, r.began = lease, 0, r.local(p.w.now)
	}
	for _, n := range ns {
		set := n.setPlain(value, lease)
		if p.x.say("node %d gives the rival the key: %t", n.idx+1, set); set {
			r.set++
		}
	}
	if r.set > len(p.w.nodes)/2 && lease > 0 && !r.valid() && !p.x.manual {
		r.holds(r.end(r.began))
		p.x.say("the rival holds until %s", p.w.clockTime(r.clock, r.until))
	}
	return a.err
}

func (p *player) theRival() *rival {
	if p.w.rival == nil {
		p.w.rival = &rival{w: p.w, clock: clock{offset: 1, rate: 1}}
	}
	return p.w.rival
}

// rival until DURATION: the rival takes itself for the holder until then.
func (p *player) rival(a *args) error {
	if !a.take("until") {
		return fmt.Errorf("rival until DURATION")
	}
	r, end := p.theRival(), p.began.add(a.duration())
	if end > p.w.now && r.set <= len(p.w.nodes)/2 {
		return fmt.Errorf("only %d nodes have given the rival their keys", r.set)
	}
	if r.until = r.local(end); end <= p.w.now {
		r.set = 0
	}
	return a.err
}

// unkey NODES [VALUE]: the rival deletes its keys there.
func (p *player) unkey(a *args) error {
	var ns []*node
	if err := p.onNodes(a, func(n *node) { ns = append(ns, n) }); err != nil {
		return err
	}
	value := "rival"
	if len(a.words) > 0 {
		value = a.next()
	}
	if r := p.theRival(); !p.x.manual {
		r.until, r.set = 0, 0
	}
	for _, n := range ns {
		n.delPlain(value)
	}
	return a.err
}

// forget NODES and revert NODES: while a node is down it loses its data, or all since save.
func (p *player) forget(a *args) error { return p.onNodes(a, (*node).forget) }
func (p *player) revert(a *args) error { return p.onNodes(a, (*node).revert) }

// replica NODE of NODE: it was the other one's replica for a moment, and has its data.
func (p *player) replica(a *args) error {
	n, err := p.node(a.next())
	if err != nil {
		return err
	}
	a.take("of")
	o, err := p.node(a.next())
	if err == nil {
		n.copy(o)
	}
	return err
}

// cut LINK requests|answers and heal LINK [broken]: no new connection is had meanwhile.
func (p *player) cut(a *args) error {
	l, err := p.link(a)
	if err == nil {
		l.cut(map[string]int{"requests": requests, "answers": answers}[a.next()])
	}
	return err
}

func (p *player) heal(a *args) error {
	l, err := p.link(a)
	if err == nil {
		l.heal(a.take("broken"))
	}
	return err
}

// point LINK NODE: the address of LINK reaches the server of NODE with its next connection.
func (p *player) point(a *args) error {
	l, err := p.link(a)
	if err != nil {
		return err
	}
	n, err := p.node(a.next())
	if err == nil {
		l.point(n)
	}
	return err
}

// notice tells a process that a connection is up, or down.
func (p *player) notice(q parcel) error {
	n, err := p.node(q.to)
	if err != nil {
		return err
	}
	l := p.on.process(q.from).links[n.idx]
	p.x.handle(event{kind: q.kind, proc: l.proc, gen: l.proc.epoch, m: &message{link: l, gen: l.gen}}, p.w.now)
	return nil
}

func (p *player) wake(a *args) error { p.on.process(a.next()).wake(); return a.err }

// giveup N: the operation on the record with that number ends.
func (p *player) giveUp(a *args) error { p.on.giveUp(a.number()); return a.err }

func (p *player) caughtUp(a *args) error {
	return p.onNodes(a, func(n *node) {
		inc, _ := n.model.Incarnation()
		n.complete(inc)
	})
}

// repair NODE by LABEL
func (p *player) repair(a *args) error {
	n, err := p.node(a.next())
	if err != nil || !a.take("by") {
		return fmt.Errorf("repair NODE by LABEL")
	}
	label := a.next()
	return p.on.repair(label, n, a.take("told"))
}

// resize PERMITS NODES [failed]
func (p *player) resize(a *args) error {
	limit, ns := uint64(a.number()), []*node(nil)
	if err := p.onNodes(a, func(n *node) { ns = append(ns, n) }); err != nil {
		return err
	}
	if a.take("failed") { // it has reached so few nodes that it counts for nothing
		for _, n := range ns {
			n.model.Resize(limit, p.w.permits.at+1)
		}
		return nil
	}
	p.w.resize(limit, ns)
	return nil
}

// propose LABEL N: so many attempts of the process come to nothing before anything is sent.
func (p *player) propose(a *args) error {
	q, n := p.on.process(a.next()), a.number()
	for range n {
		q.ticket(p.w.newID())
	}
	return a.err
}

// forge NODES: a record of the far future is there.
func (p *player) forge(a *args) error {
	return p.onNodes(a, func(n *node) {
		v := protocol.Version{Ticket: protocol.MaxTicket - 1, Seq: 1}
		n.model.Forge(protocol.Stored{Version: v, Value: []byte("forged")}, v)
	})
}

// advance DURATION: so much time passes.
func (p *player) advance(a *args) error {
	d := a.duration()
	p.x.advance((p.w.now+moment(500*time.Nanosecond))/1000*1000 + moment(d))
	return a.err
}

// at DURATION: time passes until then.
func (p *player) at(a *args) error {
	d := a.duration()
	p.x.advance(p.began.add(d))
	return a.err
}

// show [LABEL]
func (p *player) show(a *args) error {
	label := ""
	if len(a.words) > 0 {
		label = a.next()
	}
	return p.on.show(p.x, label)
}
