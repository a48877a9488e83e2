package operator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A call that is cut short tells how long removed servers must still run. That
// is never 0s, and never less than it takes.
func TestFollowing(t *testing.T) {
	t.Parallel()
	assert.Empty(t, following(0))
	for left, says := range map[time.Duration]string{
		time.Millisecond: "running for 1s more", 499 * time.Millisecond: "running for 1s more",
		time.Second:             "running for 1s more",
		9400 * time.Millisecond: "running for 10s more",
	} {
		assert.Contains(t, following(left), says)
	}
}
