// Package peers is a client's nodes: the connections to them, the set that they
// are, and whose clock is right. It gives process.Client and nodeset.Membership
// the time and the nodes' answers, and does what they say. Its nodes are of two
// kinds: the members of the set that it counts on, by their numbers, and the
// addresses of its list, which only show which set that is. Of the claims at
// these nodes it knows the interface that package core implements.
//
//	node.go, handshake.go                 how each connection begins
//	recording.go                          how the nodes record their set
//	members.go, members_*.go              which set counts, what follows from it, what calls wait for
//	client.go                             whose clock is right, and what has been forgotten
//	reach.go, quorum.go                   what the log and a probe hear of it; why a node has no vote
//	nodes.go, peers.go, tasks.go          how it begins, the list of the nodes; the state of all of it; goroutines
//
// Package core says in which order locks are taken, and which goroutines there
// are.
package peers
