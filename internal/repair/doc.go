// Package repair is how a node that lost its data gets back what the others
// have recorded. Until then it cannot attest that something was not recorded.
// It is pure.
//
//	repair.go, repair_timing.go   which node is repaired, when, and whether one more may be restarted
//	repair_attempt.go, repair_node.go   by which steps
package repair
