package sim

import (
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// This file has the commands about processes, their connections and claims.

// process LABEL [wall DURATION] [rate FACTOR] [settings 1/N]
func (c *cast) process(a *args) error {
	q := c.proc(a.next())
	for len(a.words) > 0 && a.err == nil {
		switch a.next() {
		case "wall":
			q.off = a.duration()
			q.adjust()
		case "rate":
			_, err := fmt.Sscan(a.next(), &q.rate)
			a.fail(err)
		case "offset":
			_, err := fmt.Sscan(a.next(), &q.clock.offset)
			a.fail(err)
		default:
			return fmt.Errorf("process has no such option")
		}
	}
	if c.manual {
		c.meet(q)
	}
	return a.err
}

// resume LABEL [timers first]
func (c *cast) resume(a *args) error {
	q := c.proc(a.next())
	q.timersFirst = a.take("timers")
	q.resume()
	return a.err
}

// sleep LABEL DURATION [breaks]; with manual it ends by wake.
func (c *cast) sleep(a *args) error {
	q, d := c.proc(a.next()), time.Duration(0)
	if !c.manual {
		d = a.duration()
	}
	q.sleep(d, a.take("breaks"))
	return a.err
}

// spare LABEL: the process finds out whether one more node may be restarted.
func (c *cast) spare(a *args) error {
	label := a.next()
	c.proc(label).survey(func(may bool) {
		c.say("%s: one more node may be restarted: %t", label, may)
	})
	return a.err
}

// propose LABEL N: so many attempts of the process come to nothing before
// anything is sent.
func (c *cast) propose(a *args) error {
	q, n := c.proc(a.next()), a.number()
	for range n {
		q.propose()
	}
	return a.err
}

// link reads the two ends of a connection: e>1.
func (c *cast) link(a *args) (*link, error) {
	q, err := a.pattern()
	if err != nil {
		return nil, err
	}
	n, err := c.node(q.to)
	if err != nil {
		return nil, err
	}
	return c.proc(q.from).links[n.idx], nil
}

func (c *cast) connect(a *args) error {
	l, err := c.link(a)
	if err == nil {
		if l.connect(); !l.up {
			c.say("%s>%d does not connect", l.proc.label, l.idx+1)
		}
	}
	return err
}

// cut LINK requests|answers and heal LINK [broken]: no new connection is had
// meanwhile.
func (c *cast) cut(a *args) error {
	l, err := c.link(a)
	if err != nil {
		return err
	}
	which := a.next()
	d, ok := map[string]int{"requests": requests, "answers": answers}[which]
	if !ok {
		return fmt.Errorf("%q is neither requests nor answers", which)
	}
	l.cut(d)
	return a.err
}

func (c *cast) heal(a *args) error {
	l, err := c.link(a)
	if err == nil {
		l.heal(a.take("broken"))
	}
	return err
}

// deliver PATTERN: what is under way and matches arrives now.
func (c *cast) deliver(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := c.find(q)
	switch {
	case err != nil && c.manual && (q.kind == evUp || q.kind == evDown):
		return c.notice(q)
	case err != nil && c.manual:
		return nil // with another rule set it may not have been sent
	case err != nil:
		return err
	}
	c.sayAnswers = !c.manual
	defer func() { c.sayAnswers = false }()
	if q.no > 0 || c.manual {
		at = at[:1]
	}
	for k, i := range at { // each delivery moves the others up
		c.arrive(i - k)
	}
	return nil
}

// notice tells a process that a connection is up, or down.
func (c *cast) notice(q parcel) error {
	n, err := c.node(q.to)
	if err != nil {
		return err
	}
	l := c.proc(q.from).links[n.idx]
	c.handle(event{kind: q.kind, proc: l.proc, gen: l.proc.epoch, m: &message{link: l, gen: l.gen, req: protocol.Request{Node: l.no}}}, c.w.now)
	return nil
}

// claim LABEL [try] [weight N] [defer NODES AFTER] [id HEX]
func (c *cast) claim(a *args) error {
	label, try, weight := a.next(), false, uint64(1)
	if c.w.capacity == 1<<30 {
		weight = c.w.capacity // of a read-write lock: a writer
	}
	var s start
	for a.err == nil {
		switch {
		case a.take("try"):
			try = true
		case a.take("weight"):
			weight = uint64(a.number())
		case a.take("wall"):
			q := c.proc(label)
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
		case a.take("lock"):
			lock := a.number()
			if lock < 1 || lock > len(c.w.of) {
				return fmt.Errorf("there is no lock %d: see the option locks", lock)
			}
			t, err := c.participant(label)
			if err != nil {
				return err
			}
			t.lock = lock - 1
		case a.take("residue"):
			s.id[0], s.id[15], s.fixed = label[0], byte(a.number()), true
		default:
			c.proc(label)
			c.next = s
			t, err := c.participant(label)
			switch {
			case err != nil:
				return err
			case t.att != nil:
				return fmt.Errorf("%s has a claim", label)
			}
			t.weight = weight
			t.acquire(try)
			c.note(t)
			return nil
		}
	}
	return a.err
}

// evict LABEL NODES: an operator has these nodes say that the hold ends.
func (c *cast) evict(a *args) error {
	label, nodes := a.next(), uint64(0)
	if err := c.onNodes(a, func(n *node) { nodes |= 1 << n.idx }); err != nil {
		return err
	}
	return c.act(label, "evict", nodes)
}

// giveup N: the operation on the record with that number ends.
func (c *cast) giveUp(a *args) error {
	no := a.number()
	for _, q := range c.w.procs {
		for _, i := range slices.Clone(q.ops) {
			if i.no == no {
				i.end(false)
			}
		}
	}
	return a.err
}

// show [LABEL]: what a claim knows, or what the nodes and all claims do.
func (c *cast) show(a *args) error {
	if len(a.words) > 0 {
		a, err := c.attempt(a.next())
		if err != nil {
			return err
		}
		c.say("%s", a.view())
		return nil
	}
	for _, n := range c.w.nodes {
		c.say("%s", c.kept(n))
	}
	for t := range c.w.participants() {
		if t.att != nil && t != t.proc.succession {
			c.say("%s", t.att.view())
		}
	}
	c.unserved()
	return nil
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
		return p.act(label, what, weight)
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
		return p.record(label, lease.RegisterOp{Op: op, Alive: alive, Stored: protocol.Stored{Value: []byte(value), Erased: erase}}, seq)
	}
}
