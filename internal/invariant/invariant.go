// Package invariant checks invariants in builds with the tag invariants, which
// tests, the simulator and chaos have. In other builds On is false, and the
// compiler removes what depends on it:
//
//	if invariant.On {
//		defer c.check(now)
//	}
package invariant

// Check panics if an invariant does not hold. text says what must hold. It prints
// the text first, because a panic under a lock may keep a test from ending.
func Check(holds bool, text string) {
	if !holds {
		println("broken invariant: " + text)
		panic("broken invariant: " + text)
	}
}
