// Package repair is how a node that lost its data gets back what the others
// have recorded. Until then it cannot attest that something was not recorded.
// It is pure.
//
//	repair.go, repair_timing.go   which node is repaired, and when
//	repair_attempt.go, repair_step.go, repair_node.go   by which steps
//	repair_spare.go               whether one more node may be restarted
package repair
