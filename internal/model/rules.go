package model

// The rules of a node. A test can switch one off to see what goes wrong; next
// to each rule is the name of the trace in internal/sim/testdata that shows it.
//
// Invariant: no honest node has a rule switched off. The scripts have no
// switches, so a mutant of the node exists in this package only, and
// conformance holds the scripts to all rules.

// Rules are the node's rules that a mutant can go without.
type Rules uint32

// Every rule is on in a Node whose Off is zero.
const (
	// Guard: a recovering node stores nothing and does not vote. A vote could make
	// a quorum alongside a holder whose lease the node forgot (restart.txt).
	Guard Rules = 1 << iota
	// Equality: settle never gives a claim a ticket that another claim has
	// here, or had as the fence. Two holders with one ticket would have one
	// fencing token (seed-equality.txt).
	Equality
	// InsertAboveFence: settle inserts an unknown claim at T only where T is
	// not below F. Below it the claim would come in before a claim that has the
	// vote already (insert-above-fence.txt).
	InsertAboveFence
	// SettleRefresh: settle refreshes the lease. It may be all that the node
	// hears of a claim for long, and the client counts the lease from it
	// (seed-fringe.txt).
	SettleRefresh
	// Residue: next(F) keeps to the claim's residue class; without it next(F)
	// is F+1. Then two claims could take each other's ticket on two nodes
	// without end (residue.txt).
	Residue
	// MonotoneFence: F outlives the claims; without it F is the highest ticket
	// present. The next claim could then get a token below that of one that has
	// left (fence.txt).
	MonotoneFence
	// Promise: a run that begins takes the place of the one before, which then
	// records nothing any more. A put that was under way would be taken after
	// the later run found nothing (record-promise.txt).
	Promise
	// Present: a run begins, and records without having begun, only while the
	// node votes for its claim. A late open of a claim that has ended would
	// begin a run, and its put be taken (record-present.txt).
	Present
	// PromiseIncarnation: a promise made before memory was lost is not a run's
	// leave to record. The newer promise that replaced it may be what was lost
	// (record-memory.txt).
	PromiseIncarnation
	// ResizeKnown: a node that may have forgotten a Resize does not vote for a
	// semaphore's claims. By the old number it would admit more claims than
	// there are permits (shrunk-and-forgotten.txt).
	ResizeKnown
	// Top: no fence is raised, and no record kept, farther ahead of the node's
	// clock than half of the guard time. A fence farther ahead is higher than
	// what a node gives that forgot it (future.txt).
	Top
	// FarFuture: a version that no clock can have given is not returned, and
	// keeps no run out. One forged record would otherwise spread by repairs to
	// all nodes (record-forged.txt).
	FarFuture
	// NearFuture: nor is one told that the node would not store, as it is too
	// far ahead. A reader would wait until the other nodes take it
	// (near-future.txt).
	NearFuture
	// Resume: what one request leaves over is gone on with by the next one.
	// Claims behind many dead ones would wait for a vote in vain
	// (portions-of-the-dead.txt).
	Resume
	// Ask: a client is asked for that request. Else votes that are due wait
	// until another request to the name comes (portions.txt).
	Ask
	// Enough: no client is asked for a request where nothing is left over.
	// Else the node and a client ask each other without end (portions-end.txt).
	Enough
	// Totals: a list that is too long is replaced by the totals of all claims
	// with votes. A claim that cannot see that there is room waits without need
	// (totals.txt).
	Totals
	// AllTotals: a list that is returned comes with those totals, too. At
	// another node the list may be too long, and only equal totals show
	// agreement (all-totals.txt).
	AllTotals
	// Reclaim: a recovering node takes back claims that have settled elsewhere,
	// at their tickets, without a vote. A waiter would be first there after the
	// guard time, and the holder be lost with the next node (reclaim.txt).
	Reclaim
	// FarHint: a claim behind many waiters hears when to ask again. If they are
	// dead it would ask with its next beat only (far-back.txt).
	FarHint
	// SetRefuse: a request that counts on another configuration is refused.
	// A node of two sets could give both their majority (set-refuse.txt).
	SetRefuse
	// SetPromise: no configuration is accepted below a promise.
	// Two clients could each record a set of their own (set-promise.txt).
	SetPromise
	// SetHigher: a node moves to later configurations only.
	SetHigher
	// SetGuard: a node that moves to a longer guard time waits for that one, from
	// the birth of its memory. It may have forgotten a lease of a configuration
	// with the longer one, and vote for another claim (set-guard.txt).
	SetGuard
)
