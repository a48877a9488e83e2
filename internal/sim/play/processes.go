package play

import (
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/world"
)

// Commands about processes, their connections and claims.

// process LABEL [wall DURATION] [rate FACTOR] [settings 1/N]
func (c *cast) process(a *args) error {
	q := c.proc(a.next())
	for len(a.words) > 0 && a.err == nil {
		switch a.next() {
		case "wall":
			q.Off = a.duration()
			q.Adjust()
		case "rate":
			_, err := fmt.Sscan(a.next(), &q.Clock.Rate)
			a.fail(err)
		case "offset":
			_, err := fmt.Sscan(a.next(), &q.Clock.Offset)
			a.fail(err)
		default:
			return fmt.Errorf("process has no such option")
		}
	}
	if c.World.Manual {
		c.meet(q)
	}
	return nil
}

// resume LABEL [timers first]
func (c *cast) resume(a *args) error {
	q := c.proc(a.next())
	q.TimersFirst = a.take("timers")
	q.Resume()
	return nil
}

// sleep LABEL DURATION [breaks]; with manual it ends by wake.
func (c *cast) sleep(a *args) error {
	q, d := c.proc(a.next()), time.Duration(0)
	if !c.World.Manual {
		d = a.duration()
	}
	q.Sleep(d, a.take("breaks"))
	return nil
}

// spare LABEL: the process finds out whether one more node may be restarted.
func (c *cast) spare(a *args) error {
	label := a.next()
	c.proc(label).Mender.Survey(func(may bool) {
		c.wire.Say("%s: one more node may be restarted: %t", label, may)
	})
	return nil
}

// propose LABEL N: so many attempts of the process come to nothing before
// anything is sent.
func (c *cast) propose(a *args) error {
	q, n := c.proc(a.next()), a.number()
	for range n {
		q.Propose()
	}
	return nil
}

// link reads the two ends of a connection: e>1.
func (c *cast) link(a *args) (*world.Link, error) {
	q, err := a.pattern()
	if err != nil {
		return nil, err
	}
	n, err := c.node(q.To)
	if err != nil {
		return nil, err
	}
	return c.proc(q.From).Links[n.Index], nil
}

func (c *cast) connect(a *args) error {
	l, err := c.link(a)
	if err == nil {
		if l.Connect(); !l.Up {
			c.wire.Say("%s>%d does not connect", l.Proc.Label, l.Index+1)
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
	d, ok := map[string]int{"requests": world.Requests, "answers": world.Answers}[which]
	if !ok {
		return fmt.Errorf("%q is neither requests nor answers", which)
	}
	l.Cut(d)
	return nil
}

func (c *cast) heal(a *args) error {
	l, err := c.link(a)
	if err == nil {
		l.Heal(a.take("broken"))
	}
	return err
}

// deliver PATTERN: what is under way and matches arrives now.
func (c *cast) deliver(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := c.wire.Find(q)
	switch {
	case err != nil && c.World.Manual && (q.Kind == world.EvUp || q.Kind == world.EvDown):
		return c.notice(q)
	case err != nil && c.World.Manual:
		return nil // with another rule set it may not have been sent
	case err != nil:
		return err
	}
	c.wire.SayAnswers = !c.World.Manual
	defer func() { c.wire.SayAnswers = false }()
	if q.No > 0 || c.World.Manual {
		at = at[:1]
	}
	for k, i := range at { // each delivery moves the others up
		c.wire.Arrive(i - k)
	}
	return nil
}

// notice tells a process that a connection is up, or down.
func (c *cast) notice(q world.Parcel) error {
	n, err := c.node(q.To)
	if err != nil {
		return err
	}
	l := c.proc(q.From).Links[n.Index]
	c.wire.Handle(world.Event{Kind: q.Kind, Proc: l.Proc, Gen: l.Proc.Epoch,
		M: &world.Message{Link: l, Gen: l.Gen, Req: protocol.Request{Node: l.No}}}, c.World.Now)
	return nil
}

// claim LABEL [try] [weight N] [defer NODES AFTER] [id HEX]
func (c *cast) claim(a *args) error {
	label, try, weight := a.next(), false, uint64(1)
	if c.World.Capacity == 1<<30 {
		weight = c.World.Capacity // of a read-write lock: a writer
	}
	var s Start
	for a.err == nil {
		switch {
		case a.take("try"):
			try = true
		case a.take("weight"):
			weight = uint64(a.number())
		case a.take("wall"):
			q := c.proc(label)
			q.Wall = a.duration()
		case a.take("reader"):
			weight = 1
		case a.take("defer"):
			for _, n := range a.numbers() {
				s.Later |= 1 << (n - 1)
			}
			s.After = a.duration()
		case a.take("id"):
			b, err := hex.DecodeString(a.next())
			a.fail(err)
			copy(s.ID[:], b)
			s.Fixed = true
		case a.take("lock"):
			lock := a.number()
			if lock < 1 || lock > len(c.World.Checks.Of) {
				return fmt.Errorf("there is no lock %d: see the option locks", lock)
			}
			t, err := c.participant(label)
			if err != nil {
				return err
			}
			t.Lock = lock - 1
		case a.take("residue"):
			s.ID[0], s.ID[15], s.Fixed = label[0], byte(a.number()), true
		default:
			c.proc(label)
			c.wire.Next = s
			t, err := c.participant(label)
			switch {
			case err != nil:
				return err
			case t.Att != nil:
				return fmt.Errorf("%s has a claim", label)
			}
			t.Weight = weight
			t.Acquire(try)
			c.note(t)
			return nil
		}
	}
	return nil
}

// evict LABEL NODES: an operator has these nodes say that the hold ends.
func (c *cast) evict(a *args) error {
	label, nodes := a.next(), uint64(0)
	for _, n := range c.nodes(a) {
		nodes |= 1 << n.Index
	}
	return c.act(label, "evict", nodes)
}

// giveUp N: the operation on the record with that number ends.
func (c *cast) giveUp(a *args) error {
	no := a.number()
	for _, q := range c.World.Procs {
		for _, i := range slices.Clone(q.RegisterOps.Ops) {
			if i.No == no {
				i.Finish(false)
			}
		}
	}
	return nil
}

// show [LABEL]: what a claim knows, or what the nodes and all claims do.
func (c *cast) show(a *args) error {
	if len(a.words) > 0 {
		a, err := c.attempt(a.next())
		if err != nil {
			return err
		}
		c.wire.Say("%s", View(a))
		return nil
	}
	for _, n := range c.World.Nodes {
		c.wire.Say("%s", c.kept(n))
	}
	for t := range c.World.Participants() {
		if t.Att != nil && t != t.Proc.Follower.Succession {
			c.wire.Say("%s", View(t.Att))
		}
	}
	c.wire.Unserved()
	return nil
}

// holder is a command of a claim that a single word tells.
func (c *cast) holder(what string) command {
	return func(a *args) error {
		label, weight := a.next(), uint64(0)
		if what == "shrink" {
			weight = uint64(a.number())
		}
		if a.err != nil {
			return a.err
		}
		return c.act(label, what, weight)
	}
}

// recorder is an operation on the record.
func (c *cast) recorder(op protocol.Op) command {
	return func(a *args) error {
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
		return c.record(label, lease.RegisterOp{Op: op, Alive: alive,
			Stored: protocol.Stored{Value: []byte(value), Erased: erase}}, seq)
	}
}
