package nodeset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/nodeset"
)

// A record with several addresses of a member can be read again. One of a
// single address each is written as it always was. What makes no sense is no
// configuration.
func TestAddressesAsText(t *testing.T) {
	t.Parallel()
	c := setOf(7, "a:1", "/run/100%, a b.sock", "c:1")
	for i := range c.Members {
		c.Members[i].Identity = fmt.Sprint("id", i)
	}
	single := c.String()
	assert.NotContains(t, single, "%,")
	c.Members[0].Also = []string{"a:2", "/run/%,x"}
	c.Members[2].Also = []string{"c:2", "c:3", "c:4"}
	got, ok := nodeset.ParseConfiguration(c.String())
	require.True(t, ok)
	assert.Equal(t, c, got)
	assert.Equal(t, 0, got.Place("/run/%,x"))
	assert.Equal(t, 2, got.Place("c:4"))
	assert.Equal(t, []string{"c:1", "c:2", "c:3", "c:4"}, got.Members[2].All())

	for _, bad := range []string{"a:1%,", "%,a:1", "a:1%,a:1", "a:1%,c:1", "a:1%,2%,3%,4%,5"} {
		_, ok := nodeset.ParseConfiguration(strings.Replace(single, " a:1 ", " "+bad+" ", 1))
		assert.False(t, ok, bad)
	}
}

// dialsItsOwn: a client dials the address of a member that its list names, and
// else the first one. It counts on the set that the members show there.
func dialsItsOwn(t assert.TestingT) {
	set := setOf(1, "A", "B", "C")
	for i := range set.Members {
		set.Members[i].Also = []string{set.Members[i].Addr + "2"}
	}
	m := nodeset.NewMembership([]string{"B2", "A2", "X"})
	for i, addr := range []string{"B2", "A2"} {
		m.Met(nodeset.Seed+i, recordedAt(set, addr))
		m.Up(nodeset.Seed + i)
	}
	assert.Equal(t, set, m.Config())
	assert.Equal(t, []string{"A2", "B2", "C"}, []string{m.Addr(0), m.Addr(1), m.Addr(2)})
	assert.False(t, m.Wants(nodeset.Seed), "it is the member's")
	for k := range 2 {
		assert.Equal(t, nodeset.SetFits, m.Met(k, recordedAt(set, "A2B2"[2*k:2*k+2])).Fault)
	}
}

func TestAClientDialsTheAddressOfItsList(t *testing.T) {
	t.Parallel()
	dialsItsOwn(t)
}

// A set whose members have all lost their data is recorded again with the
// addresses that the client reaches first, and with the others: another client
// may reach a server by these alone.
func TestAddressesOfASetThatIsForgotten(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	for i := range set.Members {
		set.Members[i].Also = []string{set.Members[i].Addr + "2"}
	}
	m := nodeset.NewMembership([]string{"A2", "B2", "C2"})
	for i, addr := range m.List() {
		m.Met(nodeset.Seed+i, recordedAt(set, addr))
		m.Up(nodeset.Seed + i)
	}
	require.Equal(t, set, m.Config())
	for k := range 3 {
		m.Met(k, nodeset.NodeSet{})
		m.Up(k)
	}
	assert.Nil(t, m.Config())
	assert.Equal(t, []string{"A2", "B2", "C2"}, m.List())

	for i := range 3 {
		m.Met(nodeset.Seed+i, nodeset.NodeSet{})
		m.Up(nodeset.Seed + i)
	}
	m.Recorder.Want()
	ballot := func(nodeset.Ballot) nodeset.Ballot { return "b" }
	r, _ := m.Recorder.Record(ballot, nodeset.Shared{Guard: 1}, false, func() string { return "id" })
	require.NotNil(t, r)
	assert.Equal(t, []string{"A2", "A"}, r.Config.Members[0].All())
}
