package sim

import (
	"encoding/hex"
	"fmt"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// This file has the commands about claims and the records beside them.

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
		case a.take("lock"):
			lock := a.number()
			if lock < 1 || lock > len(p.w.of) {
				return fmt.Errorf("there is no lock %d: see the option locks", lock)
			}
			t, err := p.on.participant(label)
			if err != nil {
				return err
			}
			t.lock = lock - 1
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

// evict LABEL NODES: an operator has these nodes say that the hold ends.
func (p *player) evict(a *args) error {
	label, nodes := a.next(), uint64(0)
	if err := p.onNodes(a, func(n *node) { nodes |= 1 << n.idx }); err != nil {
		return err
	}
	return p.on.hold(label, "evict", nodes)
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
		return p.on.record(label, lease.RegisterOp{Op: op, Alive: alive, Stored: protocol.Stored{Value: []byte(value), Erased: erase}}, seq)
	}
}

// giveup N: the operation on the record with that number ends.
func (p *player) giveUp(a *args) error { p.on.giveUp(a.number()); return a.err }

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
	p.w.permits.resize(p.w, limit, ns)
	return nil
}

// propose LABEL N: so many attempts of the process come to nothing before
// anything is sent.
func (p *player) propose(a *args) error {
	q, n := p.on.process(a.next()), a.number()
	for range n {
		q.propose()
	}
	return a.err
}
