package nodeset_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/nodeset"
)

// The only member has moved from A to X. A client with the new address finds
// the set and dials A. While X stands for the member, the client dials X, and
// judges the server there as any other. This ends with the call, or when the
// set records another address.
func TestAServerStandsForAMember(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A")
	member := &set.Members[0]
	m := nodeset.NewMembership([]string{"X"})
	m.Met(nodeset.Seed, recordedAt(set, "A"))
	m.Up(nodeset.Seed)
	require.Equal(t, set, m.Config())
	require.Equal(t, "A", m.Addr(0))

	m.Out = nil
	m.Stand(member, "X")
	assert.Equal(t, "X", m.Addr(0))
	assert.True(t, dials(m, 0))
	other := recordedAt(set, "A")
	other.Identity = "of another member"
	assert.NotEqual(t, nodeset.SetFits, m.Met(0, other).Fault)
	assert.Equal(t, nodeset.SetFits, m.Met(0, recordedAt(set, "A")).Fault)
	m.Up(0)
	assert.False(t, m.Wants(nodeset.Seed), "a quorum is reached")

	m.Out = nil
	m.Stand(member, "")
	assert.Equal(t, "A", m.Addr(0))
	assert.True(t, dials(m, 0))
	assert.True(t, m.Wants(nodeset.Seed))

	m.Stand(member, "X")
	m.Met(0, recordedAt(set, "A"))
	m.Up(0)
	next := *set
	next.Stamp = nodeset.StampOf(2, set.Stamp.Ballot())
	next.Members = slices.Clone(set.Members)
	next.Members[0].Addr = "Y"
	m.Decide(&next)
	assert.Equal(t, "Y", m.Addr(0), "the set records another address")
	m.Out = nil
	m.Stand(member, "")
	assert.False(t, dials(m, 0))
}

// dials reports whether member k is to be dialed again.
func dials(m *nodeset.Membership, k int) bool {
	return slices.ContainsFunc(m.Out, func(a nodeset.SetAction) bool { return a.Node == k && a.Begin })
}
