package protocol

import (
	"bytes"
	"cmp"
	"time"
)

// A record is what the nodes keep of a name beside its claims: that something
// is done, which claim leads, how many permits there are. It is written under a
// claim, and does not rest on leases: it is Paxos, with tickets for ballots, on
// nodes that may forget: docs/internals/protocol.md, "The record".

// Remember is how long a node keeps a promise at least. A put that goes on
// after its claim has been lost must end well before: at LatePut.
const (
	Remember = time.Hour
	LatePut  = Remember / 2
)

// Version says under which claim something was recorded, and as which of that
// claim's writes. Versions are ordered: by ticket, then by id, then by number.
type Version struct {
	Ticket Ticket
	ID     ID
	Seq    uint64
}

// Run compares the claims of two versions.
func (v Version) Run(o Version) int {
	return cmp.Or(cmp.Compare(v.Ticket, o.Ticket), bytes.Compare(v.ID[:], o.ID[:]))
}

// Compare orders versions.
func (v Version) Compare(o Version) int { return cmp.Or(v.Run(o), cmp.Compare(v.Seq, o.Seq)) }

// Stored is what is recorded.
type Stored struct {
	Version
	Erased bool // it is recorded that there is nothing
	Value  []byte
	Keep   time.Duration // how long the node remembers; 0: without end. Not in a node's answer
}

// Entry is what a node tells of a record.
type Entry struct {
	Stored
	CaughtUp bool          // the node has lost nothing since it was last caught up
	Forged   bool          // it keeps a version that is too far ahead of its clock, which it does not tell
	Promise  Version       // of the newest run that has begun here
	Left     time.Duration // of the lease of the claim that has recorded this; 0: it is not here, or not voted for
}
