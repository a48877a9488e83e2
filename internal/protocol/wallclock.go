package protocol

import (
	"slices"
	"time"
)

// This file owns whether a client's wall clock is wrong. Tickets are wall clock times, and
// nodes refuse tickets that are too far from their own clocks (ticketclock.go). So a
// client whose wall clock is wrong does no harm, but it would ask again and again. A
// client that a majority of the nodes contradicts makes no claims until they agree again.
// What it holds it keeps: leases do not rest on wall clocks.

// WallAllowed returns how far a wall clock may be from a node's. A ticket must stay within
// half of the guard time of the node's clock for as long as an attempt lasts.
func WallAllowed(skew, guard, ttl time.Duration) time.Duration { return max(skew, guard/2-ttl) }

// WallVerdict is what the nodes' clocks say of a client's wall clock.
type WallVerdict uint8

// The verdicts.
const (
	WallOpen  WallVerdict = iota // too few nodes have answered
	WallRight                    // no majority can contradict it any more
	WallWrong                    // a majority contradicts it, in one direction
)

// WallComparison compares a client's wall clock with the clocks of its nodes, once. It is
// not safe for concurrent use.
//
// Invariant: only a majority of all nodes, which are wrong in one direction, makes a wall
// clock wrong. Without the rule one node whose clock is wrong keeps every client from its
// locks.
type WallComparison struct {
	nodes         int
	allowed       time.Duration
	rules         Rules
	ahead, behind []time.Duration
	agree         int
}

// NewWallComparison returns a comparison that no node has answered.
func NewWallComparison(nodes int, allowed time.Duration, rules Rules) *WallComparison {
	return &WallComparison{nodes: nodes, allowed: allowed, rules: rules}
}

// Take takes the answer of a node: the wall clock is ahead of that node's clock by low at
// least and by top at most. It returns the verdict so far.
func (w *WallComparison) Take(low, top time.Duration) WallVerdict {
	switch {
	case low > w.allowed:
		w.ahead = append(w.ahead, low)
	case top < -w.allowed:
		w.behind = append(w.behind, top)
	default:
		w.agree++
	}
	need := w.nodes/2 + 1
	if !w.rules.on(RuleWall) {
		need = 1
	}
	switch {
	case len(w.ahead) >= need, len(w.behind) >= need:
		return WallWrong
	case w.agree > w.nodes-need:
		return WallRight
	}
	return WallOpen
}

// Wrong returns by how much at least the wall clock is ahead of the nodes that contradict
// it, negative if it is behind them, and how many they are.
func (w *WallComparison) Wrong() (by time.Duration, nodes int) {
	if len(w.ahead) > len(w.behind) {
		return slices.Min(w.ahead), len(w.ahead)
	}
	return slices.Max(w.behind), len(w.behind)
}
