package lease

import "github.com/quorate/quorate/internal/protocol"

// This file owns what a claim knows of one node.
// Invariant: a peer describes one incarnation of its node. An answer or a push
// of another incarnation replaces it or is ignored.

// A process may have a great many peers: see TestSizes.
type peer struct {
	ticket       protocol.Ticket      // held: at this ticket ...
	incarnation  protocol.Incarnation // ... in this incarnation
	ackSent      protocol.Time        // s of the newest acknowledgement; older ones are ignored
	pendingSince protocol.Time        // s of the request that is out; 0: none
	askAt        protocol.Time        // when it is asked again; 0 and Never: not by itself
	extraOrNil   *peerExtra           // nil: nothing of that

	held       bool  // the node said that it holds the claim
	vote       bool  // its view votes for the claim
	waiters    bool  // claims without a vote are queued there
	hinted     bool  // askAt is when asking again may bring the vote; else it is a second try
	behind     bool  // it has not answered the settling round
	askAgain   bool  // something may have been missed while a request was out: ask again after the answer
	pushUnsure bool  // it may have taken its vote back: only answers say whether it votes, see distrustPushes
	evicts     bool  // it has said since its last answer that an operator ends the hold
	refused    bool  // for good: another capacity, a wrong type, a wrong password
	failures   uint8 // in a row, as far as that can count
}

// ask has the node asked now, or after the answer that is still to come: at
// most one request of a claim is under way at a node, but what has changed
// since it was sent must not be missed.
func (p *peer) ask(now protocol.Time) {
	if p.pendingSince != 0 {
		p.askAgain = true
	} else {
		p.askAt, p.hinted = now, false
	}
}

func (p *peer) neverSent() bool {
	return p.pendingSince == 0 && p.ackSent == 0 && p.failures == 0 && !p.held && !p.refused
}

// mostFailures is from how many on nothing changes.
const mostFailures = 8

// peerExtra is what a claim knows of a node beside that. It is apart for its
// size: a process that holds 100,000 locks on five nodes has half a million
// peers. Claims that are not counted hardly ever do.
type peerExtra struct {
	lowerSet
	admittedSet   lowerSet        // a holder's: when this last admitted the claim
	limit         uint64          // how many permits there are since
	limitAt       protocol.Ticket // the Resize that the node knows of; 0: none
	shrinkPending bool            // it has not confirmed the weight of Shrink yet
	barred        bool            // another client's key keeps all claims out there
	leaseEnds     protocol.Time   // when the lease ends, if not as its ttl tells: the node is recovering and has forgotten it, or clocks disagree; 0: as that
	earlyPush     protocol.Push   // a push that overtook the answer it belongs to
}

// noExtra is never written to.
var noExtra peerExtra

// extra returns what is to be read only.
func (p *peer) extra() *peerExtra {
	if p.extraOrNil == nil {
		return &noExtra
	}
	return p.extraOrNil
}

func (p *peer) mutableExtra() *peerExtra {
	if p.extraOrNil == nil {
		p.extraOrNil = new(peerExtra)
	}
	return p.extraOrNil
}

// lowerSet is a node's list or total of the claims before this one, where they
// count.
type lowerSet struct {
	known        bool
	sum, digest  uint64
	all          totals // of a set that the node votes for and that the lower claims are a part of
	listed       bool
	lower        []protocol.Lower
	from         protocol.Ticket // where the list begins,
	prefixTotals totals          // and what there is before
}

// totals are what is known of claims that are not listed.
type totals struct{ sum, digest uint64 }
