package model

// This file owns the rules of a node. A test leaves one out to see what goes wrong.

// Rules are the node's rules that a mutant can go without.
type Rules uint32

// Every rule is on in a Node whose Off is zero.
const (
	// Guard: a recovering node stores nothing and does not vote.
	Guard Rules = 1 << iota
	// Equality: settle never gives a claim a ticket that another claim has here, or had as the fence.
	Equality
	// InsertAboveFence: settle inserts an unknown claim at T only where T is not below F.
	InsertAboveFence
	// SettleRefresh: settle refreshes the lease.
	SettleRefresh
	// Residue: next(F) keeps to the claim's residue class; without it next(F) is F+1.
	Residue
	// MonotoneFence: F outlives the claims; without it F is the highest ticket present.
	MonotoneFence
	// Promise: a run that begins takes the place of the one before, which then records nothing any more.
	Promise
	// Present: a run begins, and records without having begun, only while the node votes for its claim.
	Present
	// PromiseIncarnation: a promise made before memory was lost is not a run's leave to record.
	PromiseIncarnation
	// ResizeKnown: a node that may have forgotten a Resize does not vote for a semaphore's claims.
	ResizeKnown
	// LongestGuard: of the guard times that clients have shown the longest counts, not that of the request.
	LongestGuard
	// LongestLease: a lease is not dropped for being longer than the client of the request would be given one.
	LongestLease
	// Top: no fence is raised, and no record kept, farther ahead of the node's clock than half of the guard time.
	Top
	// FarFuture: a version that no clock can have given is not returned, and keeps no run out.
	FarFuture
	// NearFuture: nor is one told that the node would not store, as it is too far ahead.
	NearFuture
	// Resume: what one request leaves over is gone on with by the next one.
	Resume
	// Ask: a client is asked for that request.
	Ask
	// Enough: no client is asked for a request where nothing is left over.
	Enough
	// Totals: a list that is too long is replaced by the totals of all claims with votes.
	Totals
	// AllTotals: a list that is returned comes with those totals, too.
	AllTotals
	// Reclaim: a recovering node takes back claims that have settled elsewhere, at their tickets, without a vote.
	Reclaim
	// SetRefuse: a request that counts on another configuration is refused.
	SetRefuse
	// SetPromise: no configuration is accepted below a promise.
	SetPromise
	// SetHigher: a node moves to later configurations only.
	SetHigher
)
