// Package model is the reference node: what one Redis node does for its names,
// in the simplest code that is correct. The simulator uses it, and
// internal/script/conformance checks that the Lua scripts behave in the same
// way.
//
// It has no clock: every call passes the time in milliseconds of the node's own
// clock. It limits its work in the same way as the scripts, because how much a
// request does is visible in the answers. A Node is not safe for concurrent
// use: like a Redis server, it handles one request after the other.
package model

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// Node is a node: its marker, its settings, and its names. What it keeps of its
// set is in set.go.
//
// Invariant: all names of a node have one marker, so they are lost together,
// and wait for one guard time. With a marker for each name a node would vote
// for one name at once after a loss that only a request for another name has
// shown.
type Node struct {
	Bucketed bool  // it is a bucket of a node in cluster mode: its names have no redlock key
	Off      Rules // rules that are switched off; zero in every honest node
	Portion  int   // 0: the constant

	// Run is the run of the server that the marker names. A marker that Step has
	// begun names the run that the client of the step sees.
	Run string

	guardTime, retention int64 // of the set, in milliseconds; each lease is shorter than either

	set    nodeset.NodeSet
	counts nodeset.Stamp // of the client whose request comes next

	marked      bool
	incarnation protocol.Incarnation
	born        int64
	caughtUp    bool // nothing was lost since the last repair or bootstrap
	// It was caught up when it began to count: it knows each number of permits, or
	// others that count do.
	learnt bool

	first Name             // the empty name
	names map[string]*Name // the others
}

// Portion is how many claims one request reads, votes for or pushes to at most,
// besides its own: a node serves no other client meanwhile. A list may be eight
// times as long.
const Portion = 32

// bornLongAgo is the birth of a marker of a brand-new node: any guard has
// passed since.
const bornLongAgo = math.MinInt64 / 2

// untilCaughtUp is when a semaphore's claim may ask again at a node that is not
// caught up.
const untilCaughtUp = 100 * time.Millisecond

// New returns a brand-new node. It has no marker, so it refuses every request.
func New(guard time.Duration) *Node {
	n := &Node{}
	n.first.node = n
	n.Configure(guard, time.Duration(forGood/int64(time.Millisecond)))
	return n
}

// Name returns what the node keeps of a name.
func (n *Node) Name(name string) *Name {
	if name == "" {
		return &n.first
	}
	m := n.names[name]
	if m == nil {
		if n.names == nil {
			n.names = map[string]*Name{}
		}
		m = &Name{node: n}
		n.names[name] = m
	}
	return m
}

// Names returns the names that were asked for, except the empty one, in no
// particular order.
func (n *Node) Names() iter.Seq[string] { return maps.Keys(n.names) }

// Clone returns an independent copy, with all names.
func (n *Node) Clone() *Node {
	c := *n
	c.first = n.first.copied(&c)
	c.names = nil
	if len(n.names) > 0 {
		c.names = make(map[string]*Name, len(n.names))
	}
	for name, m := range n.names {
		of := m.copied(&c)
		c.names[name] = &of
	}
	return &c
}

// Forget is a restart without data: the data of all names is lost.
func (n *Node) Forget() {
	*n = Node{Off: n.Off, Portion: n.Portion, Bucketed: n.Bucketed, guardTime: n.guardTime,
		retention: n.retention, counts: n.counts, first: Name{node: n}, names: n.names}
	for _, m := range n.names {
		*m = Name{node: n}
	}
}

// Configure gives the node the settings of its set. A configuration does so
// too; see Step.
func (n *Node) Configure(guard, retention time.Duration) {
	n.guardTime, n.retention = guard.Milliseconds(), retention.Milliseconds()
}

// Guard returns the guard time of the set.
func (n *Node) Guard() time.Duration { return time.Duration(n.guardTime) * time.Millisecond }

// Bootstrap makes the node look as if it had been serving for a long time. A
// node that has an incarnation keeps it.
func (n *Node) Bootstrap(now int64, inc protocol.Incarnation) {
	if !n.marked {
		n.Mark(now, inc)
	}
	n.born, n.caughtUp, n.learnt = bornLongAgo, true, false
}

// Mark is what a client does if it saw a restart that kept the data but may
// have lost the latest writes.
func (n *Node) Mark(now int64, inc protocol.Incarnation) {
	n.marked, n.incarnation, n.born, n.caughtUp, n.learnt = true, inc, now, false, false
}

// Connect is what a node does when a client connects and says which run of the
// server it sees: scripts/mark.lua. jumped is the incarnation in which the
// client has seen the node's clock jump; 0: none. fresh is the incarnation to
// use if the node begins a new one. A server whose marker says "r+former" and
// that is now "r" has only forgotten its former master.
func (n *Node) Connect(now int64, run string, jumped, fresh protocol.Incarnation) {
	if !strings.HasPrefix(n.Run+"+", run+"+") || jumped == n.incarnation || n.born > now {
		n.Mark(now, fresh)
		n.Run = run
	}
}

// Marker returns the marker in the scripts' format, or "" if there is none.
func (n *Node) Marker() string {
	if !n.marked {
		return ""
	}
	end := ""
	switch {
	case n.caughtUp:
		end = " w"
	case n.learnt:
		end = " l"
	}
	return fmt.Sprintf("%d %d %s %d%s", n.incarnation, max(0, n.born), n.Run, n.guardTime, end)
}

// Age returns how long ago the guard time began. It is negative if the node's
// clock was set back since.
func (n *Node) Age(now int64) time.Duration {
	return time.Duration(now-max(0, n.born)) * time.Millisecond
}

// Incarnation returns the marker's value, and whether there is one.
func (n *Node) Incarnation() (protocol.Incarnation, bool) { return n.incarnation, n.marked }

// Recovering returns how much of the guard time is left at now, or 0 if the
// node votes.
func (n *Node) Recovering(now int64) time.Duration {
	if !n.marked {
		return n.Guard()
	}
	return time.Duration(max(0, n.born+n.guardTime-now)) * time.Millisecond
}

// Complete marks the node as caught up if its incarnation is inc, and reports
// whether it is. A repair that began in an earlier incarnation says nothing of
// what was lost since.
func (n *Node) Complete(inc protocol.Incarnation) bool {
	same := n.marked && n.incarnation == inc
	n.caughtUp = n.caughtUp || same
	return same
}

// CaughtUp reports whether the node can attest what is not recorded.
func (n *Node) CaughtUp() bool { return n.marked && n.caughtUp }

// Kept reports whether the node was caught up when it entered, and has lost
// nothing since.
func (n *Node) Kept() bool { return n.learnt }

// Count sets the configuration that the client of the next request relies on.
func (n *Node) Count(s nodeset.Stamp) { n.counts = s }

// Refuses reports whether the request is of a client that counts on another
// configuration. A node without a marker refuses all.
func (n *Node) Refuses() bool {
	return (n.counts != n.set.Stamp() || !n.marked) && !n.off(SetRefuse)
}

func (n *Node) off(r Rules) bool { return n.Off&r != 0 }

// portion returns how many claims a request may process.
func (n *Node) portion() int { return cmp.Or(n.Portion, Portion) }

// window returns how far tickets may be ahead of the node's clock.
func (n *Node) window() protocol.Window {
	return protocol.WindowOf(time.Duration(n.guardTime) * time.Millisecond)
}
