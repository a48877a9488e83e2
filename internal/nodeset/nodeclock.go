package nodeset

import (
	"github.com/quorate/quorate/internal/protocol"
	"math/bits"
	"slices"
	"time"
)

// A lease ends by the node's wall clock, and the client takes it to end by its
// own monotonic clock. A node's clock that is set ahead ends leases early. The
// client sees the same if its own clock stands still while the machine sleeps.
// Both look the same: the node's clock is suddenly ahead of the client's.
//
// ClockBounds notices that the two clocks have parted: a reading is outside its
// bounds. Clocks decides which of the two was wrong, by the three cases of
// docs/internals/protocol.md, "Clocks". A node in doubt is treated like a node
// that is down. It would be wrong to blame every node whose clock has moved
// away: a client that slept would then silence all nodes.

// ClockEventKind is what to do about clocks.
type ClockEventKind uint8

const (
	ClockAsk        ClockEventKind = iota + 1 // ask Nodes for their time
	ClockReportJump                           // Node's clock jumped: report it
	ClockMark                                 // have Node begin a new incarnation, unless it has one
	ClockStood                                // this process's clock stood still: report it
	ClockDoubted                              // either Node's clock or this process's was wrong: report it
	ClockEarly                                // the leases of Nodes end earlier, by By
)

type ClockEvent struct {
	Kind  ClockEventKind
	Node  int
	Nodes uint32 // a bit for each
	By    time.Duration
}

// clockCase is open while a node's clock and ours have moved apart.
type clockCase struct {
	open         bool
	at           protocol.Time // since when: what is sent from here on is evidence
	asked        protocol.Time // when the question was sent that its upper bound rests on
	by           time.Duration // how far the clocks have parted, for people
	lo, hi       int64         // at least and at most
	until        protocol.Time // it is closed then
	doubted      bool          // it is unknown whose clock it was
	alone        bool          // no other node has shown that it was not this process's
	blamed       bool          // the node's
	steady       uint32        // the nodes that cannot have parted from ours by as much
	boundsBefore []span        // what was known of all of them before asked
}

// Clocks judges the clocks of all nodes for one process. Its methods take what
// has happened; afterwards Out says what to do, and Wake when it wants a Tick.
// It is not safe for concurrent use. A runtime may call [ClockBounds.Take]
// instead of Read while Open is false, under a lock for each node.
type Clocks struct {
	Wait    time.Duration // how long the other nodes are waited for: a node timeout
	Longest time.Duration // no lease lasts longer: half the guard time of the set
	Sets    protocol.Quorums
	Out     []ClockEvent

	bounds []*ClockBounds
	cases  []clockCase
	open   int
}

// NewClocks returns a judge over the bounds, one for each node.
func NewClocks(bounds []*ClockBounds, wait, guard time.Duration) *Clocks {
	c := &Clocks{Wait: wait, Longest: guard / 2, Sets: protocol.Majority(len(bounds))}
	c.Grow(bounds)
	return c
}

// Grow adds nodes. Nothing is known of their clocks from before.
func (c *Clocks) Grow(bounds []*ClockBounds) {
	for _, b := range bounds {
		b.gap = 2 * c.Longest / 512 // so that the past goes back by a quarter of the guard time at least
		c.bounds, c.cases = append(c.bounds, b), append(c.cases, clockCase{})
	}
	for i := range c.cases {
		if k := &c.cases[i]; k.open {
			k.boundsBefore = append(k.boundsBefore, make([]span, len(bounds))...)
		}
	}
}

// Open reports whether there is an unsettled case, that is, whether some node's
// clock and this process's clock have moved apart.
func (c *Clocks) Open() bool { return c.open > 0 }

// suspect opens a case: the clocks have parted.
func (c *Clocks) suspect(node int, r Reading) {
	b, k := c.bounds[node], &c.cases[node]
	lo, hi := b.parted(r)
	shown := lo
	if hi < 0 {
		shown = hi
	}
	lo, hi = lo-max(lo, -lo)/clockRate, hi+max(hi, -hi)/clockRate // clocks also part while one stands still
	was := *k
	*k = clockCase{open: true, at: r.Received, by: time.Duration(shown), lo: lo, hi: hi}
	if c.open++; was.open { // once more, before the first time was settled
		c.open--
		k.until = was.until
		k.by, k.lo, k.hi = k.by+was.by, lo+was.lo, hi+was.hi
	}
	k.asked = b.asked //mutant:RuleAsked=b.at + 1
	for _, o := range c.bounds {
		w := o.before(k.asked)
		if was.open { // of two jumps nothing is known in between
			w = span{}
		}
		k.boundsBefore = append(k.boundsBefore, w)
	}
	k.until = max(k.until, r.Received.Add(c.caseLasts(k)))
	b.begin(r)
	c.Out = append(c.Out, ClockEvent{Kind: ClockAsk, Nodes: 1<<len(c.bounds) - 1})
}

// caseLasts returns how long a case stays open. If the node's clock may have jumped
// ahead, every lease that the node may have ended early has ended by then. A clock
// that was set back ends no lease early: its case only waits for the other nodes'
// evidence.
func (c *Clocks) caseLasts(k *clockCase) time.Duration {
	if k.hi < 0 {
		return c.Wait
	}
	return c.Longest
}

func (c *Clocks) closeCase(node int) {
	c.cases[node] = clockCase{}
	c.open--
}

// due returns when a case counts as undecidable.
func (c *Clocks) due(k *clockCase) protocol.Time {
	if bits.OnesCount32(c.Sets.All()) == 1 {
		return k.at // no other node can tell
	}
	return min(k.at.Add(c.Wait), k.until)
}

// slowNodeFactor is how many times Wait the client relies on the other nodes'
// leases while none of these nodes answers. They may just be slow. The total is
// at most a ttl, because a node timeout is at most a quarter of it.
const slowNodeFactor = 4

// early makes the leases that nodes gave end earlier. If two cases have the
// same cause, leases are shortened twice, which is safe. After a clock was set
// back, leases last longer, but nothing may rely on that.
func (c *Clocks) early(nodes uint32, by int64) {
	if by > 0 { //mutant:RuleEarly
		c.Out = append(c.Out, ClockEvent{Kind: ClockEarly, Nodes: nodes, By: time.Duration(by)})
	}
}

// noteEvidence notes for which cases a reading shows that this process's clock
// has not stood still, because what was known about this node rules that out.
func (c *Clocks) noteEvidence(node int, r Reading) {
	for i := range c.cases {
		k := &c.cases[i]
		if !k.open || i == node || r.Push || r.Sent < k.at {
			continue
		}
		w := &k.boundsBefore[node]
		if w.at == 0 {
			continue // the bounds may be newer than the suspicion
		}
		lo, hi := w.parted(r)
		parted := lo > 0 || hi < 0
		if overlap := lo <= k.hi && k.lo <= hi; !parted && !overlap { //mutant:RuleExclude=!parted
			k.steady |= 1 << node
		}
	}
}

// Median estimates how far the median of the nodes' clocks is ahead of this
// process's clock, in nanoseconds, from the lower ends of their bounds. Tickets
// begin with it (process.Client.Clock). A lower end stays correct if this process's
// clock stands still. Of an even number of clocks it takes the lower median. Nodes
// with an open case are used only if there are no others.
func (c *Clocks) Median() (ahead int64, known bool) {
	var buf [protocol.MaxNodes]int64
	for _, open := range []bool{false, true} {
		clocks := buf[:0]
		for i, b := range c.bounds {
			if b.known && c.Sets.All()&(1<<i) != 0 && c.cases[i].open == open {
				clocks = append(clocks, b.low)
			}
		}
		if len(clocks) > 0 {
			slices.Sort(clocks)
			return clocks[(len(clocks)-1)/2], true
		}
	}
	return 0, false
}

func (c *Clocks) Wake() protocol.Time {
	w := protocol.Never
	for i := range c.cases {
		if k := &c.cases[i]; k.open {
			w = min(w, k.until)
			switch {
			case k.blamed || k.alone:
			case k.doubted:
				w = min(w, k.at.Add(slowNodeFactor*c.Wait))
			default:
				w = min(w, c.due(k))
			}
		}
	}
	return w
}

// IncarnationBegan starts over with a node's clock, because the node has begun
// another incarnation. Its guard time outlasts all earlier leases.
func (c *Clocks) IncarnationBegan(node int) {
	c.bounds[node].Forget(0)
	if c.cases[node].open {
		c.closeCase(node)
	}
}

// Slept records that the machine of this process slept until the given time, and
// that the clock of this process has counted the sleep. Some kernels measure a
// sleep only to a second, so our clock may now be off by as much, compared with
// every node's. So all leases end a second earlier, and the bounds of a node's
// clock from before the sleep are no evidence against that node: they start over
// with the first answer to a request sent after the sleep.
//
// A case that began after the sleep is closed. For example, our machine wakes up
// at 10 s with a clock that is 0.7 s off. An answer of node B is read at 10.1 s,
// before the goroutine that watches for sleeps runs. B seems to have jumped, but
// its bounds are from before the sleep.
//
// A case from before the sleep stays open, because the sleep does not explain
// it. It keeps its bounds: if its node's clock parts from ours once more,
// suspect adds that to the case. With new bounds it would go unnoticed.
func (c *Clocks) Slept(until protocol.Time) {
	c.early(1<<len(c.bounds)-1, int64(time.Second))
	for i, b := range c.bounds {
		if k := &c.cases[i]; k.open && k.at >= until {
			c.closeCase(i)
		}
		if !c.cases[i].open {
			b.Forget(until)
		}
	}
}
