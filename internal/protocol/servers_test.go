package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

// Of two addresses that reach one server the first to be connected keeps the vote.
func TestServers(t *testing.T) {
	t.Parallel()
	const guard = 10 * time.Second
	at := func(d time.Duration) protocol.Time { return protocol.Time(time.Hour).Add(d) }
	s := protocol.NewServers(3, guard, protocol.Rules{})
	assert.Equal(t, -1, s.Connect(at(0), 1, "x"))
	assert.Equal(t, 1, s.Connect(at(0), 0, "x"), "whatever their order in the list")
	assert.Equal(t, -1, s.Connect(at(0), 2, "y"))
	assert.Equal(t, -1, s.Connect(at(0), 1, "x"), "the first comes back")

	// The server restarts, and the second address is the first to see that.
	s.Down(at(1), 1)
	assert.Equal(t, 1, s.Connect(at(time.Second), 0, "z"))
	assert.Equal(t, -1, s.Connect(at(2*time.Second), 1, "z"))
	assert.Equal(t, 1, s.Connect(at(3*time.Second), 0, "z"))

	// The first reaches another server.
	s.Down(at(4*time.Second), 1)
	assert.Equal(t, -1, s.Connect(at(5*time.Second), 1, "w"))
	assert.Equal(t, -1, s.Connect(at(6*time.Second), 0, "z"))

	// An address that is down keeps its vote until its leases have ended.
	s.Down(at(7*time.Second), 0)
	assert.Equal(t, 0, s.Connect(at(8*time.Second), 2, "z"))
	assert.Equal(t, 0, s.Connect(at(8*time.Second), 2, "v"), "as long as nothing shows that they are two")
	assert.Equal(t, -1, s.Connect(at(7*time.Second+guard+1), 2, "z"))
	assert.Equal(t, 2, s.Connect(at(20*time.Second), 0, "z"))

	// What is not known is not compared.
	s = protocol.NewServers(2, guard, protocol.Rules{})
	assert.Equal(t, -1, s.Connect(at(0), 0, ""))
	assert.Equal(t, -1, s.Connect(at(0), 1, ""))
	assert.Empty(t, s.Run(1))
}
