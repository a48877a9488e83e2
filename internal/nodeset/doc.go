// Package nodeset decides which servers are the nodes: which configuration
// counts, which server is which member, and which replies of it count. It is
// pure.
//
//	configuration.go             what a set is, its text, and which members make a quorum
//	nodeset.go                   what a node keeps of its set
//	recording.go                 how all nodes of a list come to record one
//	membership.go, finding.go, following.go   which set counts: at the start, and later
//	binding.go                   what a connection, and a server at the address of a member, counts as
//	vouch.go                     how a blank server gets its member's place back
//	incarnation.go               which replies of a node count
//	clockbounds.go               whether a node's clock and ours disagree
//	nodeclock.go, clockjudge.go  which of the two it was
//
// Invariant: what is in doubt does not vote. A node that does not vote is a
// node that is down, which is always safe.
package nodeset
