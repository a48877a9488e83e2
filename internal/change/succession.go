package change

import (
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// One attempt to have the nodes decide the successor of a configuration, by an
// operator that proposes it, or by a client that has to know it for a repair.
//
// The successor is decided by a register under a lock, both at the nodes that
// stay or leave. Otherwise an exchange could not be undone if its new nodes
// cannot be reached. So two operators that exchange nodes at the same time
// agree on each step, and each one carries out what the other one decided.

// Succession is the Run that has the nodes decide which configuration follows
// another one, or reads what was decided before. Its name, and its record's, is
// Register, with Succession set for both.
type Succession struct {
	lease.Run
	Of          *nodeset.Configuration // that it follows
	Register    string
	TTL         time.Duration // of the hold
	NodeTimeout time.Duration

	known   bool                   // what follows is known
	decided *nodeset.Configuration // nil: nothing
}

// succeeds is how many leases bound one try. The lock of the register is held
// by another operator for a few round trips, or by one that died for a lease.
const succeeds = 4

// NewSuccession returns a Succession of a client with these settings. With nil
// nothing is proposed.
//
// The set may have a guard time that does not cover the client's ttl: the
// change may be about to give it one, or a longer one. The lock has a lease
// that fits.
//
// Invariant: a client counts on what the register says, never on what it
// proposed. An operator that died may have had another change decided, which no
// node shows yet. A put that fails may have reached some nodes, or all: so
// Exchange takes a first step for its own until the register has been read.
func NewSuccession(c, next *nodeset.Configuration, ttl, timeout time.Duration) *Succession {
	s := &Succession{Of: c, Register: nodeset.SuccessorName(c.Stamp), TTL: ttl, NodeTimeout: timeout}
	if most := c.LongestTTL(); s.TTL > most {
		s.TTL, s.NodeTimeout = most, min(timeout, most/4)
	}
	s.Succession = true
	s.Within = succeeds * ttl //mutant:ConstSuccession
	s.Opened = func(found protocol.Stored) *protocol.Stored {
		switch {
		case found.Version != protocol.Version{} && !found.Erased:
			s.decided, s.known = nodeset.ParseConfiguration(string(found.Value))
		case next == nil:
			s.known = true
		default: // without an end: an operator may come back after days
			v := s.Version
			v.Seq++
			return &protocol.Stored{Version: v, Value: []byte(next.String())}
		}
		return nil
	}
	return s
}

// Decided returns what follows, nil if nothing does yet, and whether that is
// known.
func (s *Succession) Decided() (c *nodeset.Configuration, known bool) { return s.decided, s.known }
