package protocol

// The rules of repairs. The comment says what happens without each.
const (
	RuleRepairMeet       Rule = firstRepairRule + iota // each client looks at each node that it connects to: a node that no register is read from is not repaired
	RuleRepairGuard                                    // names are listed after the node's guard time: what is recorded in between is not found
	RuleRepairRestart                                  // a node that loses its data again is repaired from the beginning: what was brought before is not found
	RuleRepairSteady                                   // a node that loses its data while it lists names does not count: what it alone knew is not found
	RuleRepairEvery                                    // a node is marked once it has every name: what could not be brought is not found
	RuleRepairDecide                                   // a register that a reader finds undecided is decided by a run of its own: the node is never repaired
	RuleRepairRetry                                    // a repair that has failed is tried again: as above
	RuleRepairTurns                                    // clients take turns at a node: each of them brings it everything
	RuleRepairBound                                    // so many names at a time: the node's connection breaks
	RuleRepairResize                                   // a node that has missed a Resize gets the number: it counts by the old one
	RuleSpareCaughtUp                                  // the next node is restarted once all others are caught up: what was recorded is not found
	RuleRepairSuccession                               // the register of what follows another configuration is left out: a node that entered is never caught up
	RuleRepairBoth                                     // while both sets count, a node is repaired only if the new one does not count alone: what that has recorded is not found
)

// firstRepairRule leaves room for the rules of the local queue.
const firstRepairRule = 192
