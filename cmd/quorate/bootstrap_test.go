package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A server that has just started may be one that lost its data. The command
// says so once for each, waits, and declares the nodes new. Each run is a new
// process of the server, so the wait is for that one.
func TestBootstrapWaitsForServersThatHaveJustStarted(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	for i := range 3 {
		require.NoError(t, c.Node(i).Restart())
	}
	nodes := "--nodes=" + strings.Join(c.URLs(), ",")
	p := start(t, "bootstrap", nodes, "--guard", "6s")
	require.Equal(t, 0, p.status(), p.err.String())
	for _, addr := range c.Addrs() {
		assert.Equal(t, 1, strings.Count(p.err.String(), "quorate: "+addr+" started "), p.err.String())
	}
	assert.Contains(t, p.err.String(), "If no client has ever used it, pass --new\n")
	assert.Contains(t, p.out.String(), "Declared 3 nodes brand-new")
	for i := range 3 {
		up, err := uptime(t.Context(), c.Node(i).Client())
		require.NoError(t, err)
		assert.GreaterOrEqual(t, up, 5*time.Second, "it has waited, for each of them")
	}

	require.NoError(t, c.Node(0).Restart())
	status, out, errs := call("bootstrap", nodes, "--guard", "6s")
	assert.Equal(t, 0, status, errs)
	assert.Contains(t, out, "Already recorded; nothing changed")
	assert.Empty(t, errs, "a recorded set is no reason to wait")
}

// Ctrl-C ends the wait, and nothing is recorded. With --new there is none.
func TestBootstrapOfNewServers(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	require.NoError(t, c.Node(0).Restart())
	nodes := "--nodes=" + c.URLs()[0]
	p := start(t, "bootstrap", nodes, "--guard", "10m")
	require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "the rest of the guard time") },
		20*time.Second, 5*time.Millisecond)
	p.signal(os.Interrupt)
	assert.Equal(t, 1, p.status())
	assert.Contains(t, p.err.String(), "nothing was changed")
	assert.Zero(t, c.Node(0).Client().DBSize(t.Context()).Val())

	status, out, errs := call("bootstrap", nodes, "--guard", "10m", "--new")
	require.Equal(t, 0, status, errs)
	assert.Empty(t, errs)
	assert.Contains(t, out, "Declared 1 node brand-new")
}

// A server that does not say how long it has been up counts as one that has
// just started.
func TestUptimeThatIsNotSaid(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	client := c.Node(0).Client()
	require.NoError(t, client.Do(t.Context(), "ACL", "SETUSER", "blind", "on", ">p",
		"~*", "&*", "+@all", "-info").Err())
	blind := redis.NewClient(&redis.Options{Addr: c.Addrs()[0], Username: "blind", Password: "p"})
	defer func() { _ = blind.Close() }()
	_, err := uptime(t.Context(), blind)
	require.ErrorContains(t, err, "NOPERM")
	up, err := uptime(t.Context(), client)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, up, time.Duration(0))
}

// Only where all nodes are blank does the command look how old they are.
func TestWhatBootstrapFinds(t *testing.T) {
	t.Parallel()
	blank, mute := quorate.NodeReport{Err: fault.ErrSetUnknown, Membership: quorate.NodeBlank},
		quorate.NodeReport{}
	member, down := quorate.NodeReport{Membership: quorate.NodeRemoved},
		quorate.NodeReport{Err: os.ErrDeadlineExceeded, Membership: quorate.NodeBlank}
	for _, c := range []struct {
		is    nodesState
		nodes []quorate.NodeReport
	}{
		{nodesBlank, []quorate.NodeReport{blank, blank}},
		{nodesBlank, []quorate.NodeReport{blank, {Membership: quorate.NodeAccepted}}},
		{nodesSilent, []quorate.NodeReport{mute, blank}},
		{nodesSilent, []quorate.NodeReport{down, blank}},
		{nodesDiffer, []quorate.NodeReport{down, member}},
	} {
		assert.Equal(t, c.is, judge(quorate.Report{Nodes: c.nodes}))
	}
	assert.Equal(t, nodesDiffer,
		judge(quorate.Report{Nodes: []quorate.NodeReport{blank}, Set: quorate.SetReport{Recorded: true}}))
}
