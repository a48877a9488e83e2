package core

// This file owns the words about an exchange: its progress, the state of the set in an error, and why a change is unfit.
// No step depends on them.

import (
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// report tells the caller how far the exchange is, if that has changed.
func (x *exchange) report(c, next *protocol.Configuration, left time.Duration) {
	p := ExchangeProgress{Epoch: c.Stamp.Epoch(), Stage: c.Stage.String()}
	var silent []string
	for k := range c.Members {
		if x.e.Awaits(k) {
			silent = append(silent, c.Members[k].Addr)
		}
	}
	switch {
	case next != nil:
	case len(silent) > 0:
		p.Await = strings.Join(silent, " ") + " to answer"
	case c.Stage == protocol.Learning:
		p.Await, p.Left = "the new nodes to take in what the others have", left
		if !slices.ContainsFunc(c.Members, func(m protocol.Member) bool { return m.Role == protocol.Enters }) {
			p.Await, p.Left = "holders to get their places at the nodes that stay", x.e.Left(x.q.now())
		}
	case c.Stage == protocol.Jointly:
		p.Await, p.Left = "the leases to end that only the nodes of before know", x.e.Left(x.q.now())
	default:
		p.Await = "a majority of the nodes to serve the set"
	}
	was := x.shown
	if x.shown = p; was.Stage == p.Stage && was.Epoch == p.Epoch && was.Await == p.Await || x.ask.Progress == nil {
		return
	}
	x.ask.Progress(p)
}

// state says how far the set has come, for an error.
func (x *exchange) state() string {
	c := x.q.members.config.Load()
	if c == nil {
		return "no node of the list knows the set any more"
	}
	if c.Stage == protocol.Stable {
		return "the set is " + strings.Join(c.Addrs(), " ")
	}
	return "the exchange is under way (" + c.Stage.String() + "), which is safe: the next call finishes it, or undoes it"
}

// unfit says why the change makes no sense for the set.
func (x *exchange) unfit() string {
	c := x.counted
	for _, m := range x.goal.Add {
		if c.Place(m.Addr) >= 0 {
			return m.Addr + " is a node of the set already"
		}
	}
	for _, a := range x.goal.Remove {
		if c.Place(a) < 0 {
			return a + " is no node of the set, which is " + strings.Join(c.Addrs(), " ")
		}
	}
	return "no node of the set would be left, or there would be more than 31"
}
