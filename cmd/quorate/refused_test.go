package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// Check says of a node that is of no use that it was refused, and why, before
// anything else. Only a node that does not answer is unreachable.
func TestCheckNamesTheCause(t *testing.T) {
	c := redistest.Start(t, 3)
	require.NoError(t, c.Node(2).Client().ConfigSet(t.Context(), "requirepass", "secret").Err())
	list := func(last string) string { return strings.Join([]string{c.Addrs()[0], c.Addrs()[1], last}, ",") }
	causes := func(out string) string {
		_, text, _ := strings.Cut(out, "\n\n")
		return text
	}
	_, out, _ := call("check", "--nodes", list(c.Addrs()[2]))
	assert.Contains(t, out, c.Addrs()[2]+"  refused  ")
	assert.NotContains(t, out, "unreachable")
	assert.True(t, strings.HasPrefix(causes(out), c.Addrs()[2]+" refused: NOAUTH"), out)

	require.NoError(t, c.Node(2).Kill())
	_, out, _ = call("check", "--nodes", list(c.Addrs()[2]))
	assert.Contains(t, out, c.Addrs()[2]+"  unreachable  ")
	assert.Contains(t, causes(out), c.Addrs()[2]+" unreachable: dial tcp")
}

// A report that cannot be written is none.
func TestOutputCannotBeWritten(t *testing.T) {
	startNodes(t, 3)
	var errs strings.Builder
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	defer func() { _ = writer.Close() }()
	assert.Equal(t, cli.ExitOutput, execute([]string{"check"}, writer, &errs))
	assert.Contains(t, errs.String(), "could not write the output")
	assert.Equal(t, 0, execute([]string{"check"}, io.Discard, io.Discard))
}

// The commands about members take the settings of the set.
func TestMembersTakeTheSettingsOfTheSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	nodes := strings.Join(c.Addrs(), ",")
	status, _, errs := call("bootstrap", "--new", "--guard", "6s", "--nodes", nodes)
	require.Equal(t, 0, status, errs)
	status, out, errs := call("members", "list", "--nodes", nodes)
	assert.Equal(t, 0, status, errs)
	assert.Contains(t, out, "guard time 6s, retention 5m0s")
	status, out, _ = call("check", "--guard", "6s", "--nodes", nodes)
	assert.Equal(t, 0, status, out)
	began := time.Now()
	status, _, errs = call("members", "remove", c.Addrs()[2], "--nodes", nodes, "--timeout", "1m", "--yes")
	assert.Equal(t, 0, status, errs)
	t.Log("a node was removed after ", time.Since(began))
}

// What only asks does not wait for nodes that are down.
func TestQuestionsToNodesThatAreDown(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"every", "x", "1h", "--status"},
		{"once", "x", "--status"}, {"leader", "x", "--who"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			p := start(t, append(args, "--nodes", "127.0.0.1:1")...)
			assert.Equal(t, cli.ExitNoQuorum, p.status())
			assert.Contains(t, p.err.String(), "no quorum of nodes")
		})
	}
}
