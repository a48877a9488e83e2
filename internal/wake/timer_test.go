package wake

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// After Stop nothing keeps the timer, and through it the Quorum, for up to an
// hour.
func TestClientTimerStops(t *testing.T) {
	t.Parallel()
	var timer Timer
	timer.Start(func() { assert.Fail(t, "it has fired") })
	timer.Set(1, 1+hour)
	timer.Stop()
	timer.Set(1, 1+hour)
	assert.False(t, timer.timer.Stop(), "it ran on")
}

const hour = 3600_000_000_000
