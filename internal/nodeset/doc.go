// Package nodeset decides which servers are the nodes: which configuration
// counts, which server is which member, and which of its replies count. It is
// pure.
//
//	configuration.go             what a set is, and which members make a quorum
//	configuration_text.go        how the nodes keep it
//	nodeset.go                   what a node keeps of its set
//	recorder.go                  when all nodes of a list record one
//	recording.go                 the three questions by which they do
//	contacts.go                  which connections there are, and which set those to the list show
//	following.go, vouch.go       what members say: which set follows, whether a blank server rejoins
//	membership.go, binding.go    which set counts, and what a server at the address of a member counts as
//	incarnation.go               which replies of a node count
//	clockbounds.go               whether a node's clock and ours disagree
//	nodeclock.go, clockjudge.go  which of the two it was
//	check.go                     what must hold after each event, in builds with the tag invariants
//
// Invariant: a node in doubt does not vote. A node that does not vote is like a
// node that is down, which is always safe.
package nodeset
