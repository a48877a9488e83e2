//go:build race

package exhaustive

// A search shares no memory; with the race detector one of them is enough.
const racing = true
