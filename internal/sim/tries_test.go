package sim

import "testing"

// Of processes that try a free name at the same moment one has it, however the
// nodes see them. When each try gave up as soon as others were ahead on a
// majority, no process had it in a third of these schedules.
func TestTriesOfAFreeName(t *testing.T) {
	for seed := range uint64(3000) {
		if v, _ := run(rush, seed, nil, nil); v != nil {
			t.Fatalf("seed %d: %v", seed, v)
		}
	}
}
