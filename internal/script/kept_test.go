package script_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/script"
)

// What a client writes of its repair is read by each other client, and what
// another program has written does no harm.
func TestTurnToRepair(t *testing.T) {
	t.Parallel()
	const channel = "quorate:host-1:4711:0123456789abcdef"
	host, pid, _, _ := script.ParseOwner(channel)
	for _, left := range []int{-1, 0, 1, 1000} {
		r, ok := script.ParseTurn(script.TurnOf(channel, left))
		assert.True(t, ok)
		assert.Equal(t, script.Repairing{Host: host, PID: pid, Left: left}, r)
	}
	assert.Equal(t, 4711, pid)
	for _, none := range []string{"", "x", channel} {
		_, ok := script.ParseTurn(none)
		assert.False(t, ok, none)
	}
	for _, odd := range []string{channel + " many", channel + " 1 2", channel + " "} {
		r, ok := script.ParseTurn(odd)
		assert.True(t, ok, odd)
		assert.Equal(t, -1, r.Left, "not a number: %s", odd)
	}
	listing, bringing := script.Repairing{"a", 1, -1}, script.Repairing{"a", 1, 7}
	assert.Equal(t, "process 1 on a lists what was recorded", listing.String())
	assert.Equal(t, "process 1 on a brings what was recorded, 7 left", bringing.String())
}
