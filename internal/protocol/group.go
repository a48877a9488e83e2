package protocol

import (
	"strings"
	"time"
)

// Group lists the nodes that a client asks, and determines which of them make a
// quorum.
type Group struct {
	Nodes int // members have numbers below this
	Sets  Quorums
	// Deciders make a quorum for deciding the next configuration: the nodes
	// that stay or leave. Successor is the name of the register for that
	// decision, empty if the client knows no set.
	Deciders  Quorums
	Successor string
	Absent    uint32 // nodes that get no requests, a bit for each
	// Reassigned are the numbers that belong to another member than in the previous
	// group that the client received.
	Reassigned uint32
	Window     Window        // how far tickets may be from clocks: the guard time that leases must fit
	Guard      time.Duration // the longest guard time that counts; 0: the Client's
	LongestTTL time.Duration // the longest TTL of a claim; 0: any
	// RestartJoining: attempts that are not settled start again, because nodes
	// that are not asked any more may have admitted earlier claims.
	RestartJoining bool
}

// Fresh returns how long an answer about a record counts, from when its request was
// sent: half of the guard time. While the guard time is being changed, the shorter
// one counts, which Window has. For example, node C promises a run to client F and
// loses its data, and reader H counts an old answer of B:
//
//	F's run begins less than Fresh after it asked C, so within half of C's guard
//	time. By then B has promised it, too.
//	C answers again when its guard time is over. What H asked B less than Fresh
//	before that was asked after F's run had begun, so B has told H of it.
//
// The two Fresh together are 2% less than a guard time, because clients' clocks and
// the node's may run at different speeds.
func (g *Group) Fresh() time.Duration {
	guard := time.Duration(g.Window) * time.Millisecond
	guard -= guard / 50
	return guard / 2 //mutant:RuleFreshHalf=guard
}

// Of returns the quorums and the unasked nodes for a claim or an operation.
// succession says that it decides the next configuration.
func (g *Group) Of(succession bool) (sets Quorums, absent uint32) {
	if succession {
		return g.Deciders, ^g.Deciders.All()
	}
	return g.Sets, g.Absent
}

// Asked returns the nodes that get requests, a bit for each.
func (g *Group) Asked() uint32 { return (1<<g.Nodes - 1) &^ g.Absent }

// Past reports whether name is the register that decided what followed an
// earlier configuration. That decision is over, and the nodes that are asked
// now may not know it.
func (g *Group) Past(succession bool, name string) bool {
	return succession && name != g.Successor //mutant:RuleSetSuccessor=false
}

// Successors is the prefix of the names of the registers that decide the next
// configuration. It is reserved, and stored on the nodes, so changing it would
// split a running set.
const Successors = "quorate set "

// IsSuccessorRegister reports whether name is a register that decides the
// configuration after another one.
func IsSuccessorRegister(name string) bool { return strings.HasPrefix(name, Successors) }

// Brings reports whether a node that lost its data has to get a name in its
// repair, and whether the name is a register that decides the next
// configuration.
// Invariant: what follows a configuration is repaired at the nodes that decide
// it, and is read from these alone (RuleRepairSuccession).
func (g *Group) Brings(node int, name string) (brings, succession bool) {
	if g.Successor == "" || !IsSuccessorRegister(name) {
		return true, false
	}
	bare, _, _ := strings.Cut(name, "}") // nodes list it with the rest of its key
	return bare == g.Successor && g.Deciders.All()&(1<<node) != 0, true
}
