// Package peers is a client's nodes: the connections to them, the set that they
// are, and whose clock is right. It gives process.Client and nodeset.Membership
// the time and the nodes' answers, and does what they say. Its nodes are of two
// kinds: the members of the set that it counts on, by their numbers, and the
// addresses of its list, which only show which set that is. Of the claims at
// these nodes it knows the interface that package core implements.
//
//	peers.go                              what all of it shares
//	nodes.go, node.go, handshake.go       the nodes, each one, and how a connection to it begins
//	client.go                             whose clock is right, and what has been forgotten
//	members.go, members_*.go              which set counts, what follows from it, what calls wait for
//	recording.go                          how the nodes record their set
//	reach.go, observer.go                 what the log, a probe and the observer hear of it
//
// Package core says in which order locks are taken, and which goroutines there
// are.
package peers
