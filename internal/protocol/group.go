package protocol

import (
	"strings"
	"time"
)

// This file owns the nodes that a client asks, and which of them make a quorum.

// Group is which nodes a client asks, and which of them make a quorum.
type Group struct {
	Nodes int // numbers up to here may be members
	Sets  Quorums
	// Deciders make a quorum of what follows the configuration: the nodes that
	// stay or leave. The name of that register is Successor, empty if the
	// client knows no set.
	Deciders  Quorums
	Successor string
	Absent    uint32 // nodes that are asked nothing, a bit for each
	// Others are the numbers that stand for another member than when the client
	// heard of a group last.
	Others     uint32
	Window     Window        // how far tickets may be from clocks: the guard time that leases fit
	Guard      time.Duration // the longest that counts; 0: that of the Client
	LongestTTL time.Duration // of a claim; 0: any
	// RestartJoining: attempts that are not settled start again, as claims of
	// before may have been admitted by nodes that are not asked any more.
	RestartJoining bool
}

// Fresh returns how long an answer about a record counts: less than a guard
// time, as our clock and the node's may run at different speeds.
func (g *Group) Fresh() time.Duration {
	guard := time.Duration(g.Window) * time.Millisecond
	return guard - guard/50
}

// Of returns the group for a claim or an operation.
func (g *Group) Of(succession bool) (sets Quorums, absent uint32) {
	if succession {
		return g.Deciders, ^g.Deciders.All()
	}
	return g.Sets, g.Absent
}

// Past reports whether a name is that of a register that decided what followed
// an earlier configuration. That is no question any more, and the nodes that
// are asked now need not know the answer.
func (g *Group) Past(succession bool, name string) bool {
	return succession && name != g.Successor //mutant:RuleSetSuccessor=false
}

const Successors = "quorate set "

// IsSuccessor reports whether a name is that of such a register.
func IsSuccessor(name string) bool { return strings.HasPrefix(name, Successors) }

// Brings reports whether a node that lost its data has to get a name, and
// whether as the register that decides which configuration follows.
// Invariant: what follows a configuration is repaired at the nodes that decide
// it, and is read from these alone (RuleRepairSuccession).
func (g *Group) Brings(node int, name string) (brings, succession bool) {
	if g.Successor == "" || !IsSuccessor(name) {
		return true, false
	}
	bare, _, _ := strings.Cut(name, "}") // nodes list it with what follows the name in its keys
	return bare == g.Successor && g.Deciders.All()&(1<<node) != 0, true
}
