package client

// The controls: what must fail, so that one knows that failing would be seen.
// Beside these there are the library's own rules, each of which a build with
// the overlay of the mutants can leave out; see rules.go.
const (
	ControlNone     = "none"     // no control: the library itself
	ControlUnfenced = "unfenced" // the resource takes any token while clients are stopped
	ControlRedsync  = "redsync"  // redsync under the same faults
	ControlRival    = "rival"    // the rivals lock other keys, and say that they are ours
	// With the overlay of the mutants: one of two sets is enough while nodes
	// are exchanged.
	ControlNoBoth = "no-both"
)
