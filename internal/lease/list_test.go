package lease

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/stretchr/testify/assert"
)

// A node does not list very many claims. The claim then asks for a list that
// begins later.
func TestListThatIsTooLong(t *testing.T) {
	t.Parallel()
	c := NewClaim(Config{
		Terms: protocol.Terms{ID: protocol.ID{1}, Weight: 1, Capacity: 5000, TTL: 8 * time.Second, Counting: true},
		Nodes: 3, NodeTimeout: time.Second,
	})
	const t0 = protocol.Ticket(1) << 51
	now := protocol.Time(time.Second)
	c.Start(now, t0, 0, 0)
	sums := []uint64{4500, 4400, 4600} // they differ, and leave no room for sure
	answer := func(r protocol.Request) {
		c.Answer(now, r, protocol.Answer{Status: protocol.OK, Incarnation: protocol.Incarnation(r.Node + 1),
			Ticket: t0, Vote: true, HasTotals: true, Sum: sums[r.Node], Digest: sums[r.Node]})
	}
	var asked []protocol.Ticket
	for range 12 {
		out := append([]protocol.Request(nil), c.Out...)
		c.Out = nil
		for _, r := range out {
			if r.List && r.Node == 0 {
				asked = append(asked, r.Ticket)
			}
			answer(r)
		}
		now = max(now.Add(time.Millisecond), min(c.Wake(), now.Add(time.Second)))
		c.Tick(now)
	}
	if assert.GreaterOrEqual(t, len(asked), 2) {
		assert.Equal(t, t0-1<<20, asked[0], "a second")
		assert.Equal(t, t0-1<<12, asked[len(asked)-1], "a few milliseconds")
	}
}
