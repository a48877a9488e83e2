// Package fleet is the servers, the ways to them, and what the harness knows of
// both: which servers are the set, and which are without their data. It breaks
// nothing by itself.
//
//	repair.go       whether a node that says that it is caught up has all
//	pulse.go        when servers did not answer the harness
//	memory.go       how many nodes are without their data, and until when
//	lists.go        which lists of nodes exclude each other
//	wires.go        the ways from clients to nodes, and the faults on them
//	node_change.go  restarts, clocks and files of a node
//	node.go         one server, and what should not be left on it
//	roster.go       which servers the set consists of, as far as it is known
//
// A marker is what a node remembers of itself. It tells one incarnation from
// the next: a node begins one when it has lost its data.
package fleet
