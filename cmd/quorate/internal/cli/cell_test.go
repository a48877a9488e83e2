package cli_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/inspect"
)

// No text of another process or of a node ends its cell or its line, or is
// longer than 1 kB, and errors are what they were.
func TestClean(t *testing.T) {
	t.Parallel()
	forged := "x\ny\tz\f\x1b[2J"
	safe := `x\ny\tz\f\x1b[2J`
	cause := errors.New("ERR " + forged)
	r := quorate.Report{Nodes: []quorate.NodeReport{{
		Version: forged, Role: forged, Eviction: forged, Err: cause, Refuses: cause, Warnings: []string{forged},
		Shards: []quorate.NodeReport{{Fsync: forged}}, Repair: quorate.Repair{Host: forged},
	}}}
	n := cli.Clean(r).Nodes[0]
	for _, is := range []string{n.Version, n.Role, n.Eviction, n.Warnings[0], n.Shards[0].Fsync, n.Repair.Host} {
		assert.Equal(t, safe, is)
	}
	assert.Equal(t, "ERR "+safe, n.Err.Error())
	assert.ErrorIs(t, n.Refuses, cause)
	assert.Equal(t, forged, r.Nodes[0].Version, "the report itself is unchanged")

	name := &inspect.Report{Holders: []inspect.Claim{{Host: forged, Label: forged, Note: forged}},
		Record: &inspect.Record{Value: forged}}
	c := cli.Clean(name)
	assert.Equal(t, safe, c.Holders[0].Label)
	assert.Equal(t, safe, c.Holders[0].Note)
	assert.Equal(t, safe, c.Record.Value)
	assert.Equal(t, forged, name.Record.Value)
	var none *inspect.Claim
	assert.Nil(t, cli.Clean(none))

	assert.Less(t, len(cli.Cell(strings.Repeat("é\n", 1<<20))), 1100)
	assert.Less(t, len(cli.Cell(strings.Repeat("\x00", 1000))), 1100)

	assert.Equal(t, "a\nb\\tc\\f", cli.Lines("a\nb\tc\f"))
	assert.Less(t, len(cli.Lines(strings.Repeat("x", 1<<20))), 8300)
}
