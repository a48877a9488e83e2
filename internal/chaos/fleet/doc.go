// Package fleet has the servers, the proxies in front of them, and what the
// harness knows about both: which servers form the set, and which have lost
// their data. It injects no faults on its own.
//
//	repair.go       whether a node that claims to be caught up has every record
//	pulse.go        the times when servers did not answer the harness
//	memory.go       which nodes have lost their data, and until when
//	lists.go        which lists of nodes exclude each other
//	wires.go        the proxies between clients and nodes, and their faults
//	node_change.go  restarts, clocks and files of a node
//	node.go         one server, and the leftovers on it
//	roster.go       which servers form the set, as far as the harness knows
//
// A marker is what a node stores about itself. It identifies the node's
// incarnation: a node that has lost its data begins a new one.
package fleet
