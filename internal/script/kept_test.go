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

// A server that was a replica may forget that, without having lost anything.
func TestRunThatAMarkerNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		marker, run string
		named       bool
	}{
		{"a", "a", true},
		{"a", "a+x", false},
		{"a+x", "a+y", false},
		{"a+x", "a+x", true},
		{"a+x", "a", true},
		{"a+x", "b", false},
		{"ab", "a", false},
		{"a+xy", "a+x", false},
	} {
		m, ok := script.ParseMarker("7 1000 " + c.marker + " 5 w")
		assert.True(t, ok)
		assert.Equal(t, c.named, m.Names(c.run), "%s, told %s", c.marker, c.run)
	}
}
