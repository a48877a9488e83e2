package protocol

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// This file owns whether a client's wall clock is wrong. Tickets are wall clock
// times, and nodes refuse tickets that are too far from their own clocks
// (ticketclock.go). So a client whose wall clock is wrong does no harm, but it
// would ask again and again. A client that a majority of the nodes contradicts
// makes no claims until they agree again. What it holds it keeps: leases do not
// rest on wall clocks.
//
// A wrong clock is found before it does harm, and the comparison names the
// cause. Without it every Lock fails with refusals that an operator cannot tell
// from a loaded node.

// WallAllowed returns how far a wall clock may be from a node's. A ticket must
// stay within half of the guard time of the node's clock for as long as an
// attempt lasts.
func WallAllowed(skew, guard, ttl time.Duration) time.Duration { return max(skew, guard/2-ttl) }

// WallVerdict is what the nodes' clocks say of a client's wall clock.
type WallVerdict uint8

// The verdicts.
const (
	WallOpen  WallVerdict = iota // too few nodes have answered
	WallRight                    // no majority can contradict it any more
	WallWrong                    // a majority contradicts it, in one direction
)

// WallComparison compares a client's wall clock with the clocks of its nodes,
// once. It is not safe for concurrent use.
//
// Invariant: only a quorum of the nodes, which are wrong in one direction,
// makes a wall clock wrong. Without the rule one node whose clock is wrong
// keeps every client from its locks.
type WallComparison struct {
	sets                 Quorums
	allowed              time.Duration
	rules                Rules
	ahead, behind, agree uint32          // nodes, a bit for each
	by                   []time.Duration // by node: by how much the wall clock is ahead at least, negative if it is behind
}

// NewWallComparison returns a comparison that no node has answered.
func NewWallComparison(sets Quorums, allowed time.Duration, rules Rules) *WallComparison {
	return &WallComparison{sets: sets, allowed: allowed, rules: rules, by: make([]time.Duration, bits.Len32(sets.All()))}
}

// Take takes the answer of a node: the wall clock is ahead of that node's clock
// by low at least and by top at most. It returns the verdict so far.
func (w *WallComparison) Take(node int, low, top time.Duration) WallVerdict {
	bit := uint32(1) << node
	switch {
	case w.sets.All()&bit == 0: // it is no member
	case low > w.allowed:
		w.ahead, w.by[node] = w.ahead|bit, low
	case top < -w.allowed:
		w.behind, w.by[node] = w.behind|bit, top
	default:
		w.agree |= bit
	}
	switch {
	case w.sets.Met(w.ahead), w.sets.Met(w.behind), !w.rules.on(RuleWall) && w.ahead|w.behind != 0:
		return WallWrong
	case w.sets.Blocked(w.agree):
		return WallRight
	}
	return WallOpen
}

// Wrong returns by how much at least the wall clock is ahead of the nodes that
// contradict it, negative if it is behind them, and how many they are.
func (w *WallComparison) Wrong() (by time.Duration, nodes int) {
	contradict, more := w.ahead, func(a, b time.Duration) bool { return a < b }
	if bits.OnesCount32(w.behind) >= bits.OnesCount32(w.ahead) {
		contradict, more = w.behind, func(a, b time.Duration) bool { return a > b }
	}
	for i, d := range w.by {
		if contradict&(1<<i) != 0 && (by == 0 || more(d, by)) {
			by = d
		}
	}
	return by, bits.OnesCount32(contradict)
}

// WallTrouble is by how much at least a client's wall clock is ahead of the
// nodes that contradict it, negative if it is behind them, and how many they
// are.
type WallTrouble struct {
	By    time.Duration
	Nodes int
}

// wallClock is when a client compares its wall clock with the nodes' clocks:
// when a node has come up, when an answer gives a reason, every ttl, and every
// second while a majority contradicts it. Client.mu guards it; wrong is also
// read without.
//
// Invariant: a comparison ends. A node that hangs delays the next one by
// timeout at most.
// Invariant: while the clock is wrong, comparisons go on. Else the client never
// learns that its clock has been set right, and makes no claims for as long as
// it lives.
type wallClock struct {
	every   time.Duration // between two comparisons
	spacing time.Duration // at least, after an answer that gave a reason: these come with every retry
	timeout time.Duration // of a comparison
	allowed time.Duration // 0: nothing is compared
	rules   Rules
	spread  *rand.Rand

	comparison *WallComparison // nil: none is under way
	try        uint32          // counts them
	sent       Ticket          // what the wall clock showed before the nodes were asked
	replies    uint32          // nodes that have answered, a bit for each
	at         Time            // when the next one begins, or when this one ends; Never: before the first Tick
	earliest   Time            // no reason has one begin before
	asked      bool            // there was a reason while one was under way

	wrong atomic.Pointer[WallTrouble]
}

// init sets the times. The timeout is that of a link, not a node timeout:
// answers of nodes that are farther away count, however late. Else a client of
// such nodes never learns that its clock is wrong, and one that has learnt it
// never learns that it is right again.
func (w *wallClock) init(cfg *ClientConfig) {
	*w = wallClock{
		every: max(cfg.TTL, 2*time.Second), spacing: cfg.NodeTimeout / 4, timeout: max(10*cfg.NodeTimeout, 2*time.Second),
		allowed: cfg.WallAllowed, rules: cfg.Rules, spread: rand.New(rand.NewPCG(cfg.Seed, 0)), at: Never,
	}
}

// reason has the clocks compared soon.
func (w *wallClock) reason(now Time) {
	switch {
	case w.allowed == 0 || !w.rules.on(RuleWallAsked):
	case w.comparison != nil:
		w.asked = true
	case w.at != Never:
		w.at = min(w.at, max(now, w.earliest))
	default: // the first Tick is still to come
		w.at = now
	}
}

// lacks reports whether a comparison is under way that a node which has come up
// has not answered.
//
// Invariant: such a node is asked. A comparison begins with the first node that
// comes up. Without the rule it waits for the others until its timeout, and a
// claim waits meanwhile for what it cannot get.
func (w *wallClock) lacks(node int) bool {
	return w.comparison != nil && w.replies&(1<<node) == 0 && w.rules.on(RuleWallUp)
}

// tick lets time pass. It reports whether a comparison is to begin.
func (w *wallClock) tick(now Time, sets Quorums, wall func() Ticket) (begins bool) {
	switch {
	case w.allowed == 0:
		return false
	case w.at == Never && w.comparison == nil:
		w.at = now.Add(w.every)
	case now < w.at:
	case w.comparison != nil && w.rules.on(RuleWallEnds):
		w.end(now)
	case w.comparison != nil:
		w.at = Never
	default:
		w.comparison, w.sent, w.replies = NewWallComparison(sets, w.allowed, w.rules), wall(), 0
		w.try++
		w.at = now.Add(w.timeout)
		return true
	}
	return false
}

// end ends a comparison and has another one follow.
func (w *wallClock) end(now Time) {
	w.comparison = nil
	pause := w.every
	if w.wrong.Load() != nil && w.rules.on(RuleWallAgain) {
		pause = time.Second
	}
	w.at, w.earliest = now.Add(pause-time.Duration(w.spread.Int64N(int64(pause/8)))), now.Add(w.spacing)
	if w.asked {
		w.at, w.asked = w.earliest, false
	}
}

// take takes the time of a node, and the verdict. changed reports that it is
// another one than before.
//
// Invariant: the node's time was taken between the two looks at the wall clock,
// however long the answer took and whatever this machine did meanwhile.
func (w *wallClock) take(now Time, node int, try uint32, millis int64, wall Ticket) (v WallVerdict, changed bool) {
	if w.comparison == nil || try != w.try || w.replies&(1<<node) != 0 {
		return WallOpen, false
	}
	w.replies |= 1 << node
	ahead := func(t Ticket, millis int64) time.Duration {
		return time.Duration(int64(t)-millis*1000) * time.Microsecond
	}
	switch v = w.comparison.Take(node, ahead(w.sent, millis+1), ahead(wall, millis)); v {
	case WallWrong:
		by, n := w.comparison.Wrong()
		changed = w.wrong.Swap(&WallTrouble{By: by, Nodes: n}) == nil
	case WallRight:
		changed = w.wrong.Swap(nil) != nil
	}
	if all := w.comparison.sets.All(); v != WallOpen || w.replies&all == all {
		w.end(now)
	}
	return v, changed
}

// WallWrong returns what is wrong with the wall clock, nil if no majority of
// the nodes contradicts it. While it does no claim begins: it would have no
// place in the order.
func (c *Client) WallWrong() *WallTrouble { return c.wall.wrong.Load() }

// FarTicket reports whether a node's answer to a claim does not count because
// of clocks: old, since the node has given the claim a ticket that it may have
// forgotten others above, or as the node refuses a ticket that is too far ahead
// of its clock.
func (c *Client) FarTicket(a *Attempt, r *Request, ans *Answer) (far, old bool) {
	old = ans.Status == OK && r.Op == OpJoin && a.Phase() < Holding && c.Window().Old(ans.Ticket, ans.Clock)
	return old || ans.Status == Ahead, old
}

// WallTime takes what a node's clock shows, in answer to an ActWall.
func (c *Client) WallTime(now Time, node int, try uint32, millis int64) (do []Action) {
	wall := c.Wall()
	c.mu.Lock()
	v, changed := c.wall.take(now, node, try, millis, wall)
	switch {
	case v == WallWrong:
		c.act(Action{Kind: ActWallWrong, Changed: changed})
	case v == WallRight && changed:
		c.act(Action{Kind: ActWallRight, Changed: true})
	}
	return c.unlock(now)
}
