package protocol

import "time"

// This file owns one try to have the nodes decide what follows a configuration:
// an operator that proposes it, or a client that has to know it for a repair.
//
// What follows is decided by a register under a lock, both at the nodes that
// stay or leave. Without that an exchange whose new nodes cannot be reached
// could not be undone. So two operators that exchange nodes at the same time
// agree on each step, and each carries on what the other one decided.

// SuccessionStep is what is to be done next for a Succession.
type SuccessionStep uint8

// The steps.
const (
	SuccessionLock   SuccessionStep = iota // acquire the lock of Register; tell Locked
	SuccessionRecord                       // carry out Op under that hold; tell Recorded
	SuccessionOver                         // release the hold, if there is one
)

// Succession has the nodes decide which configuration follows another one, or
// read what was decided before. Its steps come one after the other. The runtime
// ends it after Within, with Locked or Recorded of what has not come to
// anything. It is not safe for concurrent use.
type Succession struct {
	Register    string        // the name of the register, and of its lock
	TTL         time.Duration // of the hold
	NodeTimeout time.Duration
	Within      time.Duration // how long all steps may take together
	Op          RegisterOp    // of SuccessionRecord

	next    *Configuration
	version Version
	step    SuccessionStep
	known   bool           // what follows is known
	decided *Configuration // nil: nothing
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
func NewSuccession(c, next *Configuration, ttl, timeout time.Duration, rules Rules) *Succession {
	s := &Succession{Register: SuccessorName(c.Stamp), TTL: ttl, NodeTimeout: timeout, Within: rules.of(ConstSuccession, succeeds*ttl), next: next}
	if most := c.LongestTTL(); s.TTL > most {
		s.TTL, s.NodeTimeout = most, min(timeout, most/4)
	}
	return s
}

// Step returns what is to be done next.
func (s *Succession) Step() SuccessionStep { return s.step }

// Locked says that the lock is held, with the ticket and the id of its claim,
// or that it could not be acquired.
//
// To open is to read at a majority, and to keep older runs from recording. So
// of two operators whose locks follow one another the second one finds what the
// first one has put, or the first one's put fails.
func (s *Succession) Locked(v Version, held bool) {
	if s.step = SuccessionOver; held {
		s.version = Version{Ticket: v.Ticket, ID: v.ID, Seq: 1}
		s.record(RegisterOp{Op: OpOpen, Stored: Stored{Version: s.version}})
	}
}

func (s *Succession) record(op RegisterOp) {
	op.Succession = true
	s.step, s.Op = SuccessionRecord, op
}

// Recorded says what has become of Op, as it was carried out, and whether it is
// settled.
//
// Invariant: a client counts on what the register says, never on what it
// proposed. An operator that died may have had another change decided, which no
// node shows yet. A put that fails may have reached some nodes, or all: so
// Exchange takes a first step for its own until the register has been read.
func (s *Succession) Recorded(op *RegisterOp, settled bool) {
	if s.step = SuccessionOver; !settled {
		return
	}
	if op.Op == OpPut {
		s.decide(op.Stored)
		return
	}
	again, few := op.Adopt()
	found := op.Newest()
	switch {
	case few:
		s.record(RegisterOp{Op: OpPut, Stored: again})
	case found.Version != Version{} && !found.Erased:
		s.decide(found)
	case s.next != nil: // without an end: an operator may come back after days
		v := s.version
		v.Seq++
		s.record(RegisterOp{Op: OpPut, Stored: Stored{Version: v, Value: []byte(s.next.String())}})
	default:
		s.known = true
	}
}

func (s *Succession) decide(r Stored) {
	c, ok := ParseConfiguration(string(r.Value))
	if s.known = ok; ok {
		s.decided = c
	}
}

// Decided returns what follows, nil if nothing does yet, and whether that is
// known.
func (s *Succession) Decided() (c *Configuration, known bool) { return s.decided, s.known }
