//go:build invariants

package lease

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

// The checks of the tag invariants are on, and see what is wrong with a claim.
func TestBrokenInvariants(t *testing.T) {
	t.Parallel()
	held := func() *Claim {
		c := started()
		for _, r := range c.Out[:2] {
			c.Answer(2, r, protocol.Answer{Status: protocol.OK, Incarnation: 1,
				Ticket: 64, Vote: true, HasTotals: true})
		}
		return c
	}
	for what, spoil := range map[string]func(c *Claim){
		"T only rises":                                           func(c *Claim) { c.State.ticket-- },
		"a final phase is never left":                            func(c *Claim) { c.State.phase = Waiting },
		"only a node that holds the claim votes for it":          func(c *Claim) { c.State.peers[2].vote = true },
		"an older answer does not replace a newer one":           func(c *Claim) { c.State.peers[0].ackSent = 0 },
		"a hold is over at its deadline":                         func(c *Claim) { c.State.deadline = 3 },
		"the deadline is the first moment at which rule 3 fails": func(c *Claim) { c.State.deadline-- },
		"rule 3 admits a holder until its deadline":              func(c *Claim) { c.State.deadline++ },
	} {
		c := held()
		was := before(c)
		if what == "a final phase is never left" {
			was.phase = Lost
		}
		assert.NotPanics(t, func() { before(held()).check(held(), 3) })
		spoil(c)
		assert.PanicsWithValue(t, "broken invariant: "+what, func() { was.check(c, 3) })
	}
}
