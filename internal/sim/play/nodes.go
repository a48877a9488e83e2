package play

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// Commands about nodes: their data, clocks and Redlock keys.

// restart NODES [amnesia|old]: a node that runs crashes first.
func (b *bench) restart(a *args) error {
	ns := b.c.nodes(a)
	amnesia, old := a.take("amnesia"), a.take("old")
	for _, n := range ns {
		if !n.Down {
			n.Crash()
		}
		switch {
		case amnesia:
			n.Forget()
		case old:
			n.Revert()
		}
		n.Restart()
	}
	return nil
}

// refuse NODES [for now | no more]
func (b *bench) refuse(a *args) error {
	ns := b.c.nodes(a)
	ends := a.take("no") && a.take("more")
	forNow := a.take("for") && a.take("now")
	for _, n := range ns {
		n.Refuses(!ends, forNow)
	}
	return nil
}

// clock NODES [by DURATION] [rate FACTOR]: the clock is set by so much, or runs
// faster.
func (b *bench) clock(a *args) error {
	ns := b.c.nodes(a)
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
			n.Clock.Jump(by)
		}
		if rate != 0 {
			n.Clock.Rate = rate
		}
		if offset != 0 {
			n.Clock.Offset = offset
		}
	}
	return nil
}

// key NODES [DURATION] [as VALUE]: another Redlock client sets the name's
// redlock key there. With a majority of the nodes it holds until the keys end;
// with manual, rival says so.
func (b *bench) key(a *args) error {
	ns := b.c.nodes(a)
	lease, value := time.Duration(0), "rival"
	if len(a.words) > 0 && a.words[0] != "as" {
		lease = a.duration()
	}
	if a.take("as") {
		value = a.next()
	}
	r := b.theRival()
	if r.Lease != lease {
		r.Lease, b.set, b.asked = lease, 0, r.Local(b.c.World.Now)
	}
	for _, n := range ns {
		set := n.SetPlain(value, lease)
		if b.c.wire.Say("node %d gives the rival the key: %t", n.Index+1, set); set {
			b.set++
		}
	}
	if b.set > len(b.c.World.Nodes)/2 && lease > 0 && !r.Valid() && !b.c.World.Manual {
		r.Holds(r.End(b.asked))
		b.c.wire.Say("the rival holds until %s", ClockTime(r.Clock, r.Until))
	}
	return nil
}

func (b *bench) theRival() *trial.Rival {
	if b.c.World.Rival == nil {
		b.c.World.Rival = &trial.Rival{World: b.c.World, Clock: course.Clock{Offset: 1, Rate: 1}}
	}
	return b.c.World.Rival
}

// rival until DURATION: the rival takes itself for the holder until then.
func (b *bench) rival(a *args) error {
	if !a.take("until") {
		return fmt.Errorf("rival until DURATION")
	}
	r, end := b.theRival(), b.c.wire.Began.Add(a.duration())
	if end > b.c.World.Now && b.set <= len(b.c.World.Nodes)/2 {
		return fmt.Errorf("only %d nodes have given the rival their keys", b.set)
	}
	if r.Until = r.Local(end); end <= b.c.World.Now {
		b.set = 0
	}
	return nil
}

// unkey NODES [VALUE]: the rival deletes its keys there.
func (b *bench) unkey(a *args) error {
	ns := b.c.nodes(a)
	value := "rival"
	if len(a.words) > 0 {
		value = a.next()
	}
	if r := b.theRival(); !b.c.World.Manual {
		r.Until, b.set = 0, 0
	}
	for _, n := range ns {
		n.DelPlain(value)
	}
	return nil
}

// replica NODE of NODE: it was the other one's replica for a moment, and has
// its data.
func (b *bench) replica(a *args) error {
	n, err := b.c.node(a.next())
	if err != nil {
		return err
	}
	a.take("of")
	o, err := b.c.node(a.next())
	if err == nil {
		n.Copy(o)
	}
	return err
}

func (b *bench) caughtUp(a *args) error {
	for _, n := range b.c.nodes(a) {
		inc, _ := n.Model.Incarnation()
		for _, o := range b.c.World.Nodes { // what the repair brought beside the record
			if !o.Down && o != n {
				n.Data(0).Resize(o.Data(0).Limit())
			}
		}
		n.Complete(inc)
	}
	return nil
}

// repair NODE by LABEL [told]: the process repairs the node if that lost its
// data. told: it only reads the record so that the node has it, which is a part
// of that.
func (b *bench) repair(a *args) error {
	n, err := b.c.node(a.next())
	if err != nil || !a.take("by") {
		return fmt.Errorf("repair NODE by LABEL")
	}
	label := a.next()
	q := b.c.proc(label)
	if a.take("told") {
		q.RegisterOps.Start(nil, lease.RegisterOp{Op: protocol.OpRead, Repair: q.To(n).No + 1},
			func(i *world.RegisterOp, ok bool) {
				b.c.wire.Say("%s repairs node %d: %s", label, n.Index+1, outcomes[i.Op.Outcome()])
			})
		return nil
	}
	q.Mender.Mended[n] = true
	if q.To(n).Up {
		q.Mender.Meets(n)
	}
	return nil
}

// undecided N [no more]: the run of the Nth of these names is under way.
func (b *bench) undecided(a *args) error {
	name := world.NameOf(a.number())
	b.c.World.Held[name] = !(a.take("no") && a.take("more"))
	return nil
}

// forge NODES [by DURATION]: a record is there that is ahead by so much, or of
// the far future.
func (b *bench) forge(a *args) error {
	ns := b.c.nodes(a)
	ahead := time.Duration(0)
	if a.take("by") {
		ahead = a.duration()
	}
	for _, n := range ns {
		t := protocol.MaxTicket - 1
		if ahead > 0 {
			t = protocol.Ticket(n.Millis()*1000 + ahead.Microseconds())
		}
		v := protocol.Version{Ticket: t, Seq: 1}
		n.Data(0).Forge(protocol.Stored{Version: v, Value: []byte("forged")}, v)
	}
	return nil
}

// resize PERMITS NODES [failed]
func (b *bench) resize(a *args) error {
	limit, ns := uint64(a.number()), b.c.nodes(a)
	if a.take("failed") { // it has reached so few nodes that it counts for nothing
		for _, n := range ns {
			n.Data(0).Resize(limit, b.c.World.Permits.At+1)
		}
		return nil
	}
	b.c.World.Permits.Resize(b.c.World, limit, ns)
	return nil
}

// holder NODES: what an onlooker makes of the answers of these nodes.
func (b *bench) whoHolds(a *args) error {
	heads := make([]lease.Head, len(b.c.World.Nodes))
	for _, n := range b.c.nodes(a) {
		heads[n.Index] = Head(n)
	}
	switch f := lease.FindHolder(heads, protocol.Majority(len(heads))); f.Kind {
	case lease.HeldByClaim:
		b.c.wire.Say("an onlooker finds a holder, at node %d", f.Node+1)
	case lease.HeldByForeign:
		b.c.wire.Say("an onlooker finds another Redlock client")
	case lease.HeldUnknown:
		b.c.wire.Say("an onlooker cannot find out the holder")
	default:
		b.c.wire.Say("an onlooker finds the name free")
	}
	return nil
}
