//go:build unix

package main

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/embedded"
	"github.com/quorate/quorate/leader"
)

// candidate returns a participant of this process.
func candidate(t *testing.T, ns *embedded.Nodes) *leader.Election {
	t.Helper()
	q, err := quorate.Connect(t.Context(), ns.URLs())
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close() })
	return leader.New(q, "x", leader.WithID("here"))
}

func TestLeaderRunsTheCommand(t *testing.T) {
	ns := startNodes(t, 3)
	p := start(t, "leader", "x", "--id", "one", "--value", "http://one", "--", "sh",
		"-c", `echo "$QUORATE_TOKEN"; read x; exit 3`)
	assert.Equal(t, 3, p.status(), "the command's own")
	first, err := strconv.ParseUint(strings.TrimSpace(p.out.String()), 10, 64)
	require.NoError(t, err)

	p = start(t, "leader", "x", "--id", "two", "--value", "http://two", "--", "sh",
		"-c", `echo "$QUORATE_TOKEN"; sleep 60`)
	p.says("\n")
	second, err := strconv.ParseUint(strings.TrimSpace(p.out.String()), 10, 64)
	require.NoError(t, err)
	assert.Greater(t, second, first)
	status, out, errs := call("leader", "x", "--who")
	assert.Equal(t, 0, status, errs)
	assert.True(t, strings.HasPrefix(out, fmt.Sprintf("\"two\" is the leader, term %d, since 20", second)), out)
	assert.Contains(t, out, fmt.Sprintf("process %d on ", p.cmd.Process.Pid))
	assert.Contains(t, out, `, value "http://two"`)

	// Another machine of the fleet waits, and runs it as soon as the first one
	// has resigned.
	next := start(t, "leader", "x", "--", "echo", "next")
	waits(t, rival(t, ns, "x"))
	assert.Empty(t, next.out.String())
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 128+15, p.status(), "the command has ended of it")
	assert.Equal(t, 0, next.status(), next.err.String())
	assert.Equal(t, "next\n", next.out.String())

	status, out, errs = call("leader", "x", "--who")
	assert.Equal(t, 1, status)
	assert.Empty(t, out)
	assert.Equal(t, "quorate: \"x\" has no leader\n", errs)

	p = start(t, "leader", "x", "--", "no-such-command")
	assert.Equal(t, 127, p.status())
	assert.NoError(t, tried(t, rival(t, ns, "x")), "it has resigned")
}

func TestLeaderSignals(t *testing.T) {
	ns := startNodes(t, 3)
	e := candidate(t, ns)
	// It resigns when the command has ended, not when the command gets the
	// signal.
	p := start(t, "leader", "x", "--", "sh",
		"-c",
		`trap 'echo asked; read x </dev/null; sleep 0.3; echo over; exit 7' TERM; echo leads; while :; do sleep 0.02; done`)
	p.says("leads")
	p.signal(syscall.SIGTERM)
	p.says("asked")
	require.NoError(t, e.Campaign(t.Context(), ""))
	assert.Contains(t, p.out.String(), "over")
	assert.Equal(t, 7, p.status())

	// A waiter leaves the queue.
	p = start(t, "leader", "x", "--", "echo", "never")
	waits(t, rival(t, ns, "x"))
	p.signal(syscall.SIGINT)
	assert.Equal(t, 130, p.status())
	assert.Empty(t, p.out.String())
	require.NoError(t, e.Resign(t.Context()))
}

func TestLeaderLost(t *testing.T) {
	ns := startNodes(t, 3)
	lose := func() {
		ns.Stop(0)
		ns.Stop(1)
	}
	back := func() {
		require.NoError(t, ns.Restart(0))
		require.NoError(t, ns.Restart(1))
	}
	p := start(t, "leader", "x", "--ttl", "800ms", "--", "sh", "-c", "echo leads; exec sleep 60")
	p.says("leads")
	lose()
	assert.Equal(t, cli.ExitLost, p.status())
	assert.Contains(t, p.err.String(), "is lost")
	back()

	p = start(t, "leader", "x", "--ttl", "800ms", "--again", "--", "sh", "-c",
		`echo "leads $QUORATE_TOKEN"; exec sleep 60`)
	p.says("leads")
	for n := 2; n < 4; n++ {
		lose()
		require.Eventually(t, func() bool { return strings.Count(p.err.String(), "is lost") == n-1 },
			20*time.Second, 5*time.Millisecond)
		back()
		require.Eventually(t, func() bool { return strings.Count(p.out.String(), "leads") == n },
			20*time.Second, 5*time.Millisecond)
	}
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 128+15, p.status(), "a signal is the end of it")

	// One that comes while the command is being ended, too.
	p = start(t, "leader", "x", "--ttl", "800ms", "--again", "--grace", "1m", "--", "sh", "-c",
		`trap 'echo asked; read x' TERM; echo leads; while :; do sleep 0.02; done`)
	p.says("leads")
	lose()
	p.says("asked")
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGQUIT)
	status := p.status()
	assert.Contains(t, []int{128 + 3, 128 + 15}, status)
	assert.Equal(t, 1, strings.Count(p.out.String(), "leads"))
}

func TestLeaderWatch(t *testing.T) {
	ns := startNodes(t, 3)
	e := candidate(t, ns)
	p := start(t, "leader", "x", "--watch")
	p.says("no leader\n")
	require.NoError(t, e.Campaign(t.Context(), "one"))
	p.says(fmt.Sprintf("\"here\" is the leader, term %d, ", e.Lease().Token()))
	require.NoError(t, e.Proclaim(t.Context(), "two"))
	p.says(`value "two"`)
	require.NoError(t, e.Resign(t.Context()))
	require.Eventually(t, func() bool { return strings.Count(p.out.String(), "no leader\n") == 2 },
		20*time.Second, 5*time.Millisecond)
	ns.Stop(0)
	ns.Stop(2)
	p.says("unknown: ")
	status, _, errs := call("leader", "x", "--who")
	assert.Equal(t, cli.ExitNoQuorum, status)
	assert.Contains(t, errs, "no quorum")
	p.signal(syscall.SIGINT)
	assert.Equal(t, 0, p.status())
}

func TestLeaderUsage(t *testing.T) {
	const nodes = "--nodes=127.0.0.1:1"
	for _, args := range [][]string{
		{"leader", "x", "--", "true"}, {"leader", "x", "--who"}, {"leader", "x", "--watch"}, // no nodes
		{"leader", nodes}, {"leader", nodes, "x"}, {"leader", nodes, "x", "--"},
		{"leader", nodes, "--", "x", "true"},
		{"leader", nodes, "--who"}, {"leader", nodes, "x", "--who", "--", "true"},
		{"leader", nodes, "x", "y", "--watch"},
		{"leader", nodes, "x", "--who", "--watch"},
		{"leader", nodes, "x", "--grace", "-1s", "--", "true"},
		{"leader", nodes, "x", "--ttl", "0s", "--", "true"},
		{"leader", nodes, "x", "--wait", "1s", "--", "true"},
	} {
		var out, errs output
		assert.Equal(t, cli.ExitUsage, execute(args, &out, &errs), "%q", args)
		assert.True(t, strings.HasPrefix(errs.String(), "quorate: "), "%q: %q", args, errs.String())
		assert.NotContains(t, errs.String(), "(try quorate --help)", "which does not have the flags of leader")
		assert.Empty(t, out.String(), "%q", args)
	}
	startNodes(t, 1)
	for _, args := range [][]string{
		{"leader", "", "--", "true"}, {"leader", "{x}", "--who"}, {"leader", "", "--watch"},
		{"leader", "x", "--id", strings.Repeat("x", leader.MaxID+1), "--", "true"},
		{"leader", "x", "--value", strings.Repeat("x", leader.MaxValue+1), "--", "true"},
	} {
		var out, errs output
		assert.Equal(t, cli.ExitUsage, execute(args, &out, &errs), "%.40q: %s", args, errs.String())
		assert.Empty(t, out.String())
	}
}
