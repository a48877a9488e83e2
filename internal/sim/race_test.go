//go:build race

package sim

// With the race detector schedules take ten times as long, and nothing here
// shares memory: a few will do.
const defaultSeeds = 1000
