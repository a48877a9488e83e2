// Package repair restores to a node that lost its data what the other nodes
// have recorded. Until then the node cannot attest that something was not
// recorded. The package is pure.
//
//	repair.go    which node is repaired, and when
//	attempt.go   one attempt to repair a node, from the first question to the last
//	io.go        what an attempt asks the nodes
//	spare.go     whether one more node may be restarted
package repair
