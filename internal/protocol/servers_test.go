package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

// Of two addresses that reach one server the first to be connected keeps the
// vote.
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
	assert.Equal(t, 1, s.Connect(at(6*time.Second), 0, "z"), "whose leases under the first may still run")
	assert.Equal(t, -1, s.Connect(at(4*time.Second+guard+1), 0, "z"))

	// An address that is down keeps its vote until its leases have ended.
	s.Down(at(17*time.Second), 0)
	assert.Equal(t, 0, s.Connect(at(18*time.Second), 2, "z"))
	assert.Equal(t, 0, s.Connect(at(18*time.Second), 2, "v"), "as long as nothing shows that they are two")
	assert.Equal(t, -1, s.Connect(at(17*time.Second+guard+1), 2, "z"))
	assert.Equal(t, 2, s.Connect(at(30*time.Second), 0, "z"))

	// What is not known is not compared.
	s = protocol.NewServers(2, guard, protocol.Rules{})
	assert.Equal(t, -1, s.Connect(at(0), 0, ""))
	assert.Equal(t, -1, s.Connect(at(0), 1, ""))
	assert.Empty(t, s.Run(1))
}

// Where runs are not known, one incarnation votes under one address.
func TestServersByIncarnation(t *testing.T) {
	t.Parallel()
	const guard = 10 * time.Second
	at := func(d time.Duration) protocol.Time { return protocol.Time(time.Hour).Add(d) }
	s := protocol.NewServers(3, guard, protocol.Rules{})
	for i := range 3 {
		assert.Equal(t, -1, s.Connect(at(0), i, ""))
	}
	assert.Equal(t, -1, s.Vote(at(0), 1, 7))
	assert.Equal(t, 1, s.Vote(at(0), 0, 7))
	assert.Equal(t, -1, s.Vote(at(0), 2, 8))
	assert.Equal(t, -1, s.Vote(at(0), 1, 7), "its own")

	// Both reconnect, the other one first.
	s.Down(at(time.Second), 0)
	s.Down(at(time.Second), 1)
	assert.Equal(t, -1, s.Connect(at(2*time.Second), 0, ""))
	assert.Equal(t, 1, s.Vote(at(2*time.Second), 0, 7))
	assert.Equal(t, -1, s.Connect(at(3*time.Second), 1, ""))
	assert.Equal(t, 1, s.Vote(at(3*time.Second), 0, 7), "before the first has shown its incarnation again")
	assert.Equal(t, -1, s.Vote(at(3*time.Second), 1, 7))

	// The leases of one that stays away end.
	s.Down(at(4*time.Second), 1)
	assert.Equal(t, 1, s.OtherAddress(at(4*time.Second+guard), 0, 7))
	assert.Equal(t, -1, s.Vote(at(4*time.Second+guard+1), 0, 7))
	assert.Equal(t, -1, s.Connect(at(5*time.Second+guard), 1, ""))
	assert.Equal(t, 0, s.Vote(at(5*time.Second+guard), 1, 7))
	assert.Equal(t, -1, s.Vote(at(5*time.Second+guard), 1, 9), "another memory is not the other's")
}

// An address that has reached another server has left leases at the one before.
func TestServersThatAnAddressHasLeft(t *testing.T) {
	t.Parallel()
	const guard = 10 * time.Second
	at := func(d time.Duration) protocol.Time { return protocol.Time(time.Hour).Add(d) }
	s := protocol.NewServers(3, guard, protocol.Rules{})
	assert.Equal(t, -1, s.Connect(at(0), 0, "x"))
	assert.Equal(t, -1, s.Vote(at(0), 0, 7))
	s.Down(at(time.Second), 0)
	assert.Equal(t, -1, s.Connect(at(2*time.Second), 0, "y"))
	assert.Equal(t, 0, s.Connect(at(3*time.Second), 1, "x"), "with a lease that x gave to 0")
	assert.Equal(t, 0, s.Connect(at(time.Second+guard), 1, "x"))
	assert.Equal(t, -1, s.Connect(at(time.Second+guard+1), 1, "x"))
	assert.Equal(t, -1, s.Vote(at(time.Second+guard+1), 1, 7), "0 no longer votes with this incarnation, though it has shown no other")

	// Where runs are not known the incarnation tells.
	s = protocol.NewServers(3, guard, protocol.Rules{})
	assert.Equal(t, -1, s.Connect(at(0), 0, ""))
	assert.Equal(t, -1, s.Vote(at(0), 0, 7))
	s.Down(at(time.Second), 0)
	assert.Equal(t, -1, s.Connect(at(2*time.Second), 0, ""))
	assert.Equal(t, -1, s.Vote(at(2*time.Second), 0, 8))
	assert.Equal(t, -1, s.Connect(at(2*time.Second), 1, ""))
	assert.Equal(t, 0, s.Vote(at(3*time.Second), 1, 7))
	assert.Equal(t, 0, s.Vote(at(2*time.Second+guard), 1, 7))
	assert.Equal(t, -1, s.Vote(at(2*time.Second+guard+1), 1, 7))
}

// Two addresses that come to reach each other's server vote again, at the
// latest a guard time later, whatever order they connect in.
func TestServersThatChangePlaces(t *testing.T) {
	t.Parallel()
	const guard = 10 * time.Second
	at := func(d time.Duration) protocol.Time { return protocol.Time(time.Hour).Add(d) }
	for _, runs := range [][2]string{{"x", "y"}, {"x", ""}, {"", "y"}} {
		for _, order := range [][2]int{{0, 1}, {1, 0}} {
			s := protocol.NewServers(2, guard, protocol.Rules{})
			for i := range 2 {
				assert.Equal(t, -1, s.Connect(at(0), i, runs[i]))
				assert.Equal(t, -1, s.Vote(at(0), i, protocol.Incarnation(7+i)))
			}
			for i := range 2 {
				s.Down(at(time.Second), i)
			}
			votes := 0
			for d := 2 * time.Second; d < 3*guard; d += time.Second {
				votes = 0
				for _, i := range order {
					if s.Down(at(d), i); s.Connect(at(d), i, runs[1-i]) < 0 && s.Vote(at(d), i, protocol.Incarnation(8-i)) < 0 {
						votes++
					}
				}
			}
			assert.Equal(t, 2, votes, "%q, %v", runs, order)
		}
	}
}
