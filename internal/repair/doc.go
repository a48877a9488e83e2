// Package repair is how a node that lost its data gets back what the others
// have recorded. Until then it cannot attest that something was not recorded.
// It is pure.
//
//	repair.go    which node is repaired, and when
//	attempt.go   one attempt to repair a node, from the first question to the last
//	io.go        what an attempt asks the nodes
//	spare.go     whether one more node may be restarted
package repair
