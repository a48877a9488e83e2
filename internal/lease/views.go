package lease

import (
	"math/bits"

	"github.com/quorate/quorate/internal/protocol"
)

// What a claim knows of each node, and what the views of the nodes say at a
// moment: which nodes hold the claim, which of them vote for it, and until when
// a quorum does. answer.go has what changes in a view.
// Invariant: a peer describes one incarnation of its node. An answer or a push
// of another incarnation replaces it or is ignored.
// Invariant: a view counts while its lease runs, and only at the claim's own
// ticket.

// State is what a claim knows: what it asks the nodes for, what each node has
// answered, and the result. The events of a Claim change it.
type State struct {
	Config
	ticket       protocol.Ticket // T
	began        protocol.Time   // of the attempt, or of raising T
	settleRounds int32           // settling rounds that did not settle the claim
	raised       bool            // T is not the T0 of the join any more

	peers            []peer
	deadline         protocol.Time // Holding: rule 5
	admittedCapacity uint64        // Holding: the capacity it was admitted under
	shrunkAt         protocol.Time // s of the first request with the weight of Shrink

	phase     Phase
	evicted   bool      // an operator has ended the hold
	votedOnce bool      // some node has voted for the attempt
	listDepth listDepth // counted claims: how far back the next lists go
}

// peer is what a claim knows about one node. It is kept small, because a
// process may have very many: see TestSizes.
type peer struct {
	ticket       protocol.Ticket      // held: at this ticket ...
	incarnation  protocol.Incarnation // ... in this incarnation
	ackSent      protocol.Time        // s of the newest acknowledgement; older ones are ignored
	pendingSince protocol.Time        // s of the request that is out; 0: none
	askAt        protocol.Time        // when it is asked again; 0 and Never: not without an event
	extraOrNil   *peerExtra           // nil: all of its fields are zero

	held       bool  // the node said that it holds the claim
	vote       bool  // its view votes for the claim
	waiters    bool  // claims without a vote are queued there
	hinted     bool  // askAt is when asking again may bring the vote; else it is a second try
	behind     bool  // it has not answered the settling round
	askAgain   bool  // something may have been missed while a request was out: ask again after the answer
	pushUnsure bool  // it may have taken its vote back: only answers say whether it votes, see distrustPushes
	evicts     bool  // it has said since its last answer that an operator ends the hold
	refused    bool  // the node refuses permanently: another capacity, a wrong type, a wrong password
	ended      bool  // no vote: the leases ahead of the claim had ended when it answered
	failures   uint8 // failures in a row, at most mostFailures
}

// ask makes the claim ask the node now, or after the answer that is
// outstanding. At most one request of a claim is in flight at a node, but
// changes since it was sent must not be missed.
func (p *peer) ask(now protocol.Time) {
	if p.pendingSince != 0 {
		p.askAgain = true
	} else {
		p.askAt, p.hinted = now, false
	}
}

// neverSent reports whether the node has never been sent a request of the
// claim.
func (p *peer) neverSent() bool {
	return p.pendingSince == 0 && p.ackSent == 0 && p.failures == 0 && !p.held && !p.refused
}

// mostFailures is the count from which more failures change nothing.
const mostFailures = 8

// peerExtra is what a claim only rarely needs to know about a node. It is
// separate to keep peer small: a process that holds 100,000 locks on five nodes
// has half a million peers. Claims that are not counted hardly ever need it.
type peerExtra struct {
	lowerSet
	admittedSet   lowerSet        // of a holder: lowerSet when it last admitted the claim
	limit         uint64          // how many permits there are since that Resize
	limitAt       protocol.Ticket // the Resize that the node knows of; 0: none
	shrinkPending bool            // it has not confirmed the weight of Shrink yet
	barred        bool            // another client's key keeps all claims out there
	// When the lease ends, if that is not after the ttl: the node is recovering
	// and has forgotten the lease, or clocks disagree. 0: it ends after the
	// ttl.
	leaseEnds protocol.Time
	earlyPush protocol.Push // a push that overtook the answer it belongs to
}

// noExtra is never written to.
var noExtra peerExtra

// extra returns the extra for reading only.
func (p *peer) extra() *peerExtra {
	if p.extraOrNil == nil {
		return &noExtra
	}
	return p.extraOrNil
}

// mutableExtra returns the extra for writing, and allocates it if there is
// none.
func (p *peer) mutableExtra() *peerExtra {
	if p.extraOrNil == nil {
		p.extraOrNil = new(peerExtra)
	}
	return p.extraOrNil
}

// lowerSet is the list or the total of the lower claims at a node, for claims
// that are counted.
type lowerSet struct {
	known        bool
	sum, digest  uint64
	all          totals // of a larger set that the node votes for and that contains the lower claims
	listed       bool
	lower        []protocol.Lower
	from         protocol.Ticket // where the list begins,
	prefixTotals totals          // and the totals of the claims before it
}

// totals summarize claims that are not listed.
type totals struct{ sum, digest uint64 }

func (v *lowerSet) list(lower []protocol.Lower, from protocol.Ticket, base totals) {
	v.listed, v.lower, v.from, v.prefixTotals = true, lower, from, base
}

// listDepth is how far back from its own ticket a counted claim asks for the
// lower claims. Such a claim, of a semaphore for example, needs to know how many
// permits the lower claims use. If the nodes' totals don't prove that there is
// room, its beats ask each node for a list of the lower claims.
//
// Depth 0 is 4 ms, and each step is sixteen times as far. The nodes mostly
// differ in recent claims, so a claim begins with a depth of a second:
//   - deepenLists takes a step back if the nodes also differ in older claims;
//   - takeLowerSet takes a step forward if a node sends no list because it would
//     be too long: a node lists at most 256 claims.
type listDepth uint8

const (
	shortestList           = protocol.Ticket(1) << 12 // 4 ms: a ticket is in microseconds
	firstDepth   listDepth = 2                        // a second
	fullDepth    listDepth = 6                        // to the beginning
)

// firstTicket returns the lowest ticket in the lists that a claim with ticket t
// asks for. A claim with the ticket of 12:00:00 first asks for the claims since
// 11:59:59.
// Invariant: the result depends on d and t alone. send puts it in the request,
// and takeLowerSet computes it again to see whether the answer is to a request
// of the current depth. So if three nodes refuse a list, there is only one step.
func (d listDepth) firstTicket(t protocol.Ticket) protocol.Ticket {
	if back := shortestList << (4 * d); d < fullDepth && t > back {
		return t - back
	}
	return 0
}

func (v *State) Phase() Phase { return v.phase }

// Evicted reports whether an operator has ended the hold. Its phase is Lost.
func (v *State) Evicted() bool { return v.evicted }

// Waiters reports whether another claim is known to wait behind the claim. What
// a node said is forgotten when it no longer answers: no other node would
// report that the waiting claim is gone.
func (v *State) Waiters() bool {
	for i := range v.peers {
		if p := &v.peers[i]; p.waiters && p.failures < 2 && v.Absent&(1<<i) == 0 {
			return true
		}
	}
	return false
}

// Asks reports whether the claim asks a node, that is, whether the node is a
// member of the configuration that the claim uses.
func (v *State) Asks(node int) bool { return node < len(v.peers) && v.Absent&(1<<node) == 0 }

// Untouched reports whether the node has never been sent a request of the
// claim.
func (v *State) Untouched(node int) bool { return v.peers[node].neverSent() }

// running reports whether the node holds the claim as far as this client knows.
// The node may hold it longer: the node counts the lease from when the request
// arrives, and this client from when it was sent.
func (p *peer) running(v *State, now protocol.Time) bool {
	return p.held &&
		now < p.leaseEnds(v) //mutant:RuleLease
}

// leaseEnds returns when the lease of the newest acknowledgement ends, and with
// it the view: s + ttl - drift.
func (p *peer) leaseEnds(v *State) protocol.Time {
	if m := p.extraOrNil; m != nil && m.leaseEnds != 0 {
		return m.leaseEnds
	}
	return p.ackSent.Add(v.TTL - v.Drift) //mutant:RuleDrift=p.ackSent.Add(v.TTL)
}

// usable is rule 3 (a) and (c); a view of another incarnation (b) has been
// replaced when that incarnation was first heard of, or, a holder's, when it
// first voted again.
func (p *peer) usable(v *State, now protocol.Time) bool {
	return p.running(v, now) &&
		p.ticket == v.ticket //mutant:RuleExact
}

// isBarred reports whether no claim can get the vote of the node because
// another Redlock client has its key there. Such a node cannot tell claims
// apart, so it must not be one of the q at which T is settled.
func (p *peer) isBarred() bool {
	return p.extra().barred && !p.vote //mutant:RuleBarred=false
}

// awaited reports whether an answer of the node may still come. A try waits
// only once for a silent node, not again in each settling round.
func (p *peer) awaited(try bool) bool { return p.pendingSince != 0 && (!try || p.failures == 0) }

// exact returns the nodes that hold exactly T. Only these prove the place of
// the claim: a node that holds it at a lower ticket may have admitted a claim
// in between.
func (v *State) exact(now protocol.Time) (nodes uint32) {
	for i := range v.peers {
		if v.peers[i].usable(v, now) {
			nodes |= 1 << i
		}
	}
	return nodes
}

// Node reports whether a node is known to hold the claim, and whether it votes
// for it.
func (v *State) Node(i int, now protocol.Time) (holds, votes bool) {
	p := &v.peers[i]
	return p.running(v, now), p.vote && p.usable(v, now)
}

// Known reports whether a quorum is known to hold the claim. If not, the claim
// lacks nodes, not its turn.
func (v *State) Known(now protocol.Time) bool {
	return v.Sets.Met(v.where(func(p *peer) bool { return p.running(v, now) }))
}

func (v *State) Votes(now protocol.Time) int { return bits.OnesCount32(v.voting(now) & v.Sets.All()) }

// Voted reports whether a quorum votes for the claim. A claim that is counted
// may still have to wait.
func (v *State) Voted(now protocol.Time) bool { return v.Sets.Met(v.voting(now)) }

// voting returns the nodes whose usable views vote for the claim.
func (v *State) voting(now protocol.Time) (nodes uint32) {
	for i := range v.peers {
		if p := &v.peers[i]; p.vote && p.usable(v, now) {
			nodes |= 1 << i
		}
	}
	return nodes
}

// ballot answers questions about the views at one moment. It is out of date as
// soon as a view or T changes.
type ballot struct {
	s     *State
	now   protocol.Time
	votes uint32 // the nodes whose usable views vote for the claim
}

// at returns the ballot for the given moment, which rule 3 needs.
func (v *State) at(now protocol.Time) ballot { return ballot{v, now, v.voting(now)} }

// where returns the nodes whose views match, a bit for each.
func (v *State) where(match func(*peer) bool) (nodes uint32) {
	for i := range v.peers {
		if match(&v.peers[i]) {
			nodes |= 1 << i
		}
	}
	return nodes
}

// newestLimit returns the newest Resize that any node knows of, 0 if there is
// none.
func (v *State) newestLimit() (newest protocol.Ticket) {
	for i := range v.peers {
		newest = max(newest, v.peers[i].extra().limitAt)
	}
	return newest
}

// MissedResize reports whether the node that gave an answer does not know the
// newest number of permits that any node knows: see Repair.MissedResize.
func (v *State) MissedResize(a *protocol.Answer) bool {
	return a.Status == protocol.OK && a.LimitAt < v.newestLimit()
}

// quorumDeadline returns when so many leases of these nodes have ended that the
// rest are no quorum.
func (v *State) quorumDeadline(nodes uint32) protocol.Time {
	at, _ := protocol.Reached(v.Sets, nodes, func(i int) protocol.Time { return v.peers[i].leaseEnds(v) })
	return at
}
