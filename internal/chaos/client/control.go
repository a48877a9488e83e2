package client

// The controls: runs that must fail, which shows that the checkers would notice
// a failure. In addition, a build with the overlay of the mutants can leave out
// one of the library's own rules; see rules.go.
const (
	ControlNone     = "none"     // no control: the library itself
	ControlUnfenced = "unfenced" // the resource accepts any token while clients are stopped
	ControlRedsync  = "redsync"  // redsync instead of the library, under the same faults
	ControlRival    = "rival"    // the rivals lock other keys, but claim to lock ours
	// With the overlay of the mutants: a majority of one of the two sets is
	// enough while nodes are exchanged.
	ControlNoBoth = "no-both"
)
