//go:build invariants

package invariant

// On reports whether the build has the tag invariants.
const On = true
