package lease

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Config configures one attempt.
type Config struct {
	protocol.Terms
	Sets        protocol.Quorums // the zero value: a majority of Nodes
	NodeTimeout time.Duration    // how long to wait for an answer before the node counts as silent
	Drift       time.Duration    // how much earlier than the node the client assumes that a lease ends
	Window      protocol.Window  // how far tickets may be from the nodes' clocks
	Absent      uint32           // nodes that are asked nothing, a bit for each
	Nodes       uint8            // how many nodes are known, including those without a vote
	Try         bool             // do not wait: Busy instead
	ShortHold   bool             // the lock is usually given back at once: see Fanout
	NoRenewal   bool             // do not renew: see StopRenewal
	Succession  bool             // the claim is for the register of SuccessorName
}

// Drift returns how much earlier than a node a client assumes that a lease ends: 1%
// of the ttl for clocks that run at different speeds, 2% for jumps of the
// node's clock that other clients cannot notice, 2 ms for the node's
// resolution.
func Drift(ttl time.Duration) time.Duration { return 3*ttl/100 + 2*time.Millisecond }

// interval returns ttl/3, less up to a tenth so that claims do not all beat at
// the same time.
func (c *Config) interval() time.Duration {
	third := c.TTL / 3
	return third - third*time.Duration(c.ID[1])/2560
}

// nextBeat returns when to beat again. It is rounded down to one of a few
// moments: claims that beat at the same moment are sent together, which costs
// less for each of many claims.
func (c *Config) nextBeat(now protocol.Time) protocol.Time {
	at := now.Add(c.interval())
	if step := protocol.Time(c.TTL / 256); step >= protocol.Time(time.Millisecond) {
		return at / step * step
	}
	// With a short ttl there is nothing to gain. And the exhaustive search,
	// with a ttl of a few units, would treat states that differ in time only as
	// one.
	return at
}

// Phase is the state of an attempt. The comment of the package has the diagram.
type Phase uint8

// The phases. From Lost on they are final: "lost is final, nothing revives it".
const (
	Joining  Phase = iota // fewer than q nodes are known to hold exactly T
	Waiting               // settled at T, not admitted
	Holding               // admitted
	Lost                  // was admitted, and rule 3 no longer admits it
	Left                  // released, or cancelled
	Busy                  // a try, but others were ahead of it
	NoQuorum              // a try, but fewer than q nodes answered
	Rejected              // too many nodes refuse permanently for q to be reached
	Expired               // abandoned: start again with a new id and a new T0
	TooHeavy              // a Resize has left fewer permits than it asks for
)

func (p Phase) Final() bool { return p >= Lost }

// Ticket returns T; final once the claim has been admitted.
func (v *State) Ticket() protocol.Ticket { return v.ticket }

func (v *State) Began() protocol.Time { return v.began }

// Raised reports whether T is no longer the T0 of the join.
func (v *State) Raised() bool { return v.raised }

// Begin begins an attempt of which nothing has been sent yet, with a ticket of
// now: T0 must not be older than the attempt (rule 2).
func (v *State) Begin(now protocol.Time, t0 protocol.Ticket) { v.ticket, v.began = t0, now }

// NotStarted reports whether the attempt has not begun: see MarkNotStarted.
func (v *State) NotStarted() bool { return v.began == protocol.Never.Add(-v.TTL) }

// next returns T of another settling round: top or a higher ticket.
func (v *State) next(top protocol.Ticket) protocol.Ticket {
	v.settleRounds++
	if v.settleRounds > 2 { //mutant:RuleSpread
		// Another claim with the same residue proposes the same T. Each node
		// moves one of the two claims off it, and this repeats. Any higher T
		// will do, so derive one from the id to make the two differ.
		most := protocol.Ticket(255)
		if w := protocol.Ticket(v.Window.Half() / 2 / protocol.Residues); v.Window != 0 {
			most = min(most, w) // no farther than the nodes allow
		}
		top += protocol.Residues * (protocol.Ticket(v.ID[v.settleRounds%8]) % (most + 1))
	}
	return top
}

// StopRenewal makes the hold end with the leases that it has: no beat is sent while
// it is held. It sends nothing itself, so it works while no node can be reached.
// Shrink and Renew still send.
func (v *State) StopRenewal() { v.NoRenewal = true }

// Muted reports whether the claim is not renewed while it is held, from the start
// or since StopRenewal. Before admission it still keeps its place.
func (v *State) Muted() bool { return v.NoRenewal }

// MarkNotStarted records that no node has room for a join yet, so the attempt
// has not begun. An attempt is not abandoned before it has begun (rule 2):
// otherwise it would start again at the end of the queue for room.
func (v *State) MarkNotStarted() {
	if v.phase == Joining {
		v.began = protocol.Never.Add(-v.TTL)
	}
}
