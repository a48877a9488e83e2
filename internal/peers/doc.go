// Package peers has a client's nodes: their connections, the set that they
// form, and which of their clocks are right. It gives process.Client and
// nodeset.Membership the time and the nodes' answers, and carries out what they
// decide. There are two kinds of nodes: the members of the set that the client
// counts on, which have numbers, and the addresses of the client's list, which
// only show which set that is. Of the claims on these nodes it knows only the
// interface that package core implements.
//
//	node.go, handshake.go                 how each connection begins
//	recording.go                          how the nodes record their set
//	members.go, members_*.go              which set counts, what follows from it, what calls wait for
//	client.go                             whose clock is right, and what has been forgotten
//	reach.go, quorum.go                   what the log and a probe hear of it; why a node has no vote
//	nodes.go, peers.go, tasks.go          the list of the nodes; the state of each part; goroutines
//
// # How ready is a quorum?
//
// Several checks ask more and more of the nodes. None of them asks a node. Those
// that wait say so.
//
//	members.SetKnown    a set is known and requests name it: claims can start
//	members.CanBegin    the same; a try also needs its members to have been tried once
//	Node.Unfit          why one node is not connected or has no vote in the set
//	Peers.Unready       why no quorum of nodes is fit; says whether waiting can help
//	Peers.ReadyWith     waits until Unready returns nil, or a majority is connected and
//	                    blank; Quorum.Ready is the same with the Quorum's settings
//	Peers.Serving       why no quorum is fit, past its guard time and accepting new
//	                    locks; Quorum.Serving is the same for all buckets
//	members.Settled     waits until the set is known and each node has been tried, so
//	                    that a report does not call a node unreachable too early
//
// core.Onlooker.Check, in contrast, asks every node.
//
// Package core says in which order locks are taken, and which goroutines there
// are.
package peers
