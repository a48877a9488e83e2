package protocol

import (
	"bytes"
	"cmp"
	"time"
)

// A record is what the nodes keep for a name in addition to its claims: that
// something is done, which claim leads, or how many permits there are. It is
// written under a claim but does not depend on leases. It is Paxos, with
// tickets as ballots, on nodes that may forget; see docs/internals/protocol.md,
// "The record".

// Remember is the minimum time for which a node keeps a promise. A put that
// continues after its claim was lost must end well before that: by LatePut.
const (
	Remember = time.Hour
	LatePut  = Remember / 2
)

// Version says under which claim something was recorded, and which of that
// claim's writes it was. Versions are ordered by ticket, then by id, then by
// number.
type Version struct {
	Ticket Ticket
	ID     ID
	Seq    uint64
}

// Run compares only the claims of two versions.
func (v Version) Run(o Version) int {
	return cmp.Or(cmp.Compare(v.Ticket, o.Ticket), bytes.Compare(v.ID[:], o.ID[:]))
}

// Compare orders versions.
func (v Version) Compare(o Version) int { return cmp.Or(v.Run(o), cmp.Compare(v.Seq, o.Seq)) }

// Stored is what is recorded.
type Stored struct {
	Version
	Erased bool // the record is an erasure
	Value  []byte
	Keep   time.Duration // how long the node remembers; 0: forever. Not in a node's answer
}

// Entry is what a node reports about a record.
type Entry struct {
	Stored
	CaughtUp bool    // the node has lost nothing since it was last caught up
	Forged   bool    // it stores a version too far ahead of its clock, and does not report it
	Promise  Version // the newest run that has begun at this node
	// Time left of the lease of the claim that recorded it; 0 if the node does
	// not have the claim or does not vote for it.
	Left time.Duration
}
