//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
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
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/mutex"
)

// rival returns a Mutex of this process, to hold the lock or to see its holder.
func rival(t *testing.T, ns *embedded.Nodes, name string) *mutex.Mutex {
	t.Helper()
	return mutex.New(rivalQuorum(t, ns), name)
}

// tried is a try that enough nodes have answered. Those of a busy machine may
// answer too late.
func tried(t *testing.T, m *mutex.Mutex) (err error) {
	t.Helper()
	require.Eventually(t, func() bool {
		err = m.TryLockContext(t.Context())
		return !errors.Is(err, quorate.ErrNoQuorum)
	}, 20*time.Second, time.Millisecond)
	return err
}

func rivalQuorum(t *testing.T, ns *embedded.Nodes) *quorate.Quorum {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	q, err := quorate.Connect(ctx, ns.URLs())
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close() })
	return q
}

func TestLockRunsTheCommand(t *testing.T) {
	ns := startNodes(t, 3)
	p := start(t, "lock", "x", "--", "sh", "-c", `echo "$QUORATE_TOKEN $1"; exit 3`, "sh", "--an argument")
	assert.Equal(t, 3, p.status(), "the command's own")
	token, rest, _ := strings.Cut(strings.TrimSpace(p.out.String()), " ")
	first, err := strconv.ParseUint(token, 10, 64)
	require.NoError(t, err)
	assert.Equal(t, "--an argument", rest)

	require.True(t, e2e.Eventually(func() bool { // a try waits for no node that a busy machine makes slow
		p = start(t, "lock", "--wait", "0", "x", "--", "sh", "-c", `echo "$QUORATE_TOKEN"`)
		return p.status() == 0
	}), &p.err)
	second, err := strconv.ParseUint(strings.TrimSpace(p.out.String()), 10, 64)
	require.NoError(t, err)
	assert.Greater(t, second, first)

	for command, want := range map[string]int{"no-such-command": 127, "/no/such/path": 127, os.DevNull: 126} {
		p := start(t, "lock", "x", "--", command)
		assert.Equal(t, want, p.status(), command)
		assert.NotEmpty(t, p.err.String())
	}
	p = start(t, "lock", "x", "--", "sh", "-c", "kill -KILL $$")
	assert.Equal(t, 128+9, p.status())
	assert.NoError(t, tried(t, rival(t, ns, "x")), "released whatever became of the command")
}

// Several processes raise a number in a file with nothing but the lock to
// protect it.
func TestLockExcludes(t *testing.T) {
	startNodes(t, 3)
	file := filepath.Join(t.TempDir(), "number")
	require.NoError(t, os.WriteFile(file, []byte("0"), 0o600))
	var ps []*proc
	for range 6 {
		ps = append(ps, start(t, "lock", "x", "--", "sh", "-c",
			`n=$(cat "$0"); sleep 0.05; echo $((n+1)) >"$0"`, file))
	}
	for _, p := range ps {
		require.Equal(t, 0, p.status(), p.err.String())
	}
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "6", strings.TrimSpace(string(b)))
}

func TestLockNotToBeHad(t *testing.T) {
	ns := startNodes(t, 3)
	m := rival(t, ns, "x")
	require.NoError(t, m.LockContext(t.Context()))
	for _, wait := range []string{"0", "2s"} {
		p := start(t, "lock", "x", "--wait", wait, "--", "echo", "never")
		assert.Equal(t, cli.ExitHeld, p.status())
		assert.Contains(t, p.err.String(), fmt.Sprintf("held by process %d", os.Getpid()))
		assert.Empty(t, p.out.String())
	}
	p := start(t, "lock", "x", "--wait", "20s", "--", "echo", "now")
	waits(t, m)
	assert.Empty(t, p.out.String())
	require.NoError(t, m.UnlockContext(t.Context()))
	assert.Equal(t, 0, p.status())
	assert.Equal(t, "now\n", p.out.String())

	ns.Stop(0)
	ns.Stop(2)
	p = start(t, "lock", "x", "--wait", "300ms", "--", "echo", "never")
	assert.Equal(t, cli.ExitNoQuorum, p.status())
	assert.Contains(t, p.err.String(), "no quorum")
	assert.Empty(t, p.out.String())
}

// waits waits until a claim is queued behind m.
func waits(t *testing.T, m *mutex.Mutex) {
	t.Helper()
	require.Eventually(t, func() bool {
		h, err := m.Holder(t.Context())
		return err == nil && h.Waiters > 0
	}, 20*time.Second, 5*time.Millisecond)
}

// The majority of the nodes goes away: the command must end, and what it has
// started too, though both ignore SIGTERM. The output ends only when all that
// have it as theirs have ended.
func TestLockLost(t *testing.T) {
	ns := startNodes(t, 3)
	stubborn := `trap 'echo asked' TERM; sh -c 'trap "" TERM; sleep 60' & echo held; while :; do wait; sleep 0.01; done`
	p := start(t, "lock", "x", "--ttl", "800ms", "--grace", "300ms", "--", "sh", "-c", stubborn)
	p.says("held")
	began := time.Now()
	ns.Stop(0)
	ns.Stop(1)
	assert.Equal(t, cli.ExitLost, p.status())
	assert.Less(t, time.Since(began), 10*time.Second)
	assert.Contains(t, p.out.String(), "asked")
	assert.Contains(t, p.err.String(), "is lost")

	require.NoError(t, ns.Restart(0))
	require.NoError(t, ns.Restart(1))
	// One that obeys is gone at once, long before the grace is over.
	p = start(t, "lock", "y", "--ttl", "800ms", "--grace", "1m", "--", "sh", "-c", "echo held; exec sleep 60")
	p.says("held")
	ns.Stop(0)
	ns.Stop(1)
	assert.Equal(t, cli.ExitLost, p.status())
}

func TestLockSignals(t *testing.T) {
	ns := startNodes(t, 3)
	for s, want := range map[syscall.Signal]int{syscall.SIGTERM: 7, syscall.SIGINT: 8} {
		p := start(t, "lock", "x", "--", "sh",
			"-c", `trap 'exit 7' TERM; trap 'exit 8' INT; echo held; while :; do sleep 0.05; done`)
		p.says("held")
		p.signal(s)
		assert.Equal(t, want, p.status(), "the command has decided what to do about %v", s)
	}
	m := rival(t, ns, "x")
	require.NoError(t, m.LockContext(t.Context()))
	p := start(t, "lock", "x", "--", "echo", "never")
	waits(t, m)
	p.signal(syscall.SIGINT)
	assert.Equal(t, 130, p.status())
	assert.Empty(t, p.out.String())
	require.Eventually(t, func() bool {
		h, err := m.Holder(t.Context())
		return err == nil && h.Waiters == 0
	}, 5*time.Second, 5*time.Millisecond, "a waiter that gave up has left the queue")
	require.NoError(t, m.UnlockContext(t.Context()))
}

// A signal that is ignored from the start, as by nohup, ends no command.
func TestIgnoredSignals(t *testing.T) {
	startNodes(t, 3)
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	for _, verb := range [][]string{{"lock", "a"}, {"leader", "b"}, {"once", "c"}, {"every", "d", "1h"}} {
		p := start(t, append(verb, "--", "sh", "-c", "echo runs; sleep 60")...)
		p.says("runs")
		p.signal(syscall.SIGHUP)
		p.signal(syscall.SIGTERM)
		assert.Equal(t, 128+15, p.status(), "%s: %s", verb[0], p.err.String())
	}
}

func TestUsage(t *testing.T) {
	const nodes = "--nodes=127.0.0.1:1"
	for _, args := range [][]string{
		{"lock", "x", "--", "true"}, // no nodes
		{"check"}, {"bootstrap"},
		{"lock", nodes}, {"lock", nodes, "x"}, {"lock", nodes, "x", "true"}, {"lock", nodes, "x", "--"},
		{"lock", nodes, "--", "x", "true"}, {"lock", nodes, "x", "y", "--", "true"},
		{"lock", nodes, "x", "--no-such-flag", "--", "true"},
		{"lock", nodes, "x", "--wait", "soon", "--", "true"},
		{"lock", nodes, "x", "--wait", "-1s", "--", "true"},
		{"lock", nodes, "x", "--grace", "-1s", "--", "true"},
		{"lock", nodes, "x", "--ttl", "0s", "--", "true"},
		{"lock", nodes, "x", "--dev", "--ttl", "2s", "--", "true"},
		{"lock", "--nodes=127.0.0.1:1,127.0.0.1:2", "x", "--dev", "--", "true"},
		{"lock", nodes, "x", "--ttl", "1h", "--", "true"},
		{"lock", "--nodes=http://x", "x", "--", "true"},
		{"lock", "--nodes=127.0.0.1:1,127.0.0.1:1", "x", "--", "true"},
		{"check", "--nodes=http://x"}, {"check", "--nodes=127.0.0.1:1,,127.0.0.1:2"}, {"lock",
			"--nodes=unix://run/socket", "x", "--", "true"}, {"check", nodes, "--guard=1s"}, {"check", nodes, "more"},
		{"nodes", "-n", "0"}, {"nodes", "--port", "70000"},
		{"demo", "--nodes", "0"}, {"demo", "--workers", "1"}, {"demo", "--seconds", "1"}, {"demo", "--ttl", "1ms"},
		{"no-such-command"},
	} {
		var out, errs output
		assert.Equal(t, cli.ExitUsage, execute(args, &out, &errs), "%q", args)
		assert.True(t, strings.HasPrefix(errs.String(), "quorate: "), "%q: %q", args, errs.String())
		assert.Empty(t, out.String(), "%q", args)
	}
	// What is wrong with a name is known when there are nodes.
	startNodes(t, 1)
	for _, name := range []string{"", "{x}", strings.Repeat("x", 64<<10)} {
		var out, errs output
		assert.Equal(t, cli.ExitUsage, execute([]string{"lock", name, "--", "true"}, &out, &errs), errs.String())
	}
}

// The URLs contain passwords: a command gets them only when it is meant to.
func TestCommandDoesNotSeeTheNodes(t *testing.T) {
	startNodes(t, 1)
	echo := []string{"--", "sh", "-c", `echo "nodes=$QUORATE_NODES"`}
	for _, verb := range [][]string{{"lock", "x"}, {"sem", "s", "-n", "1"}, {"once", "o"}, {"leader", "l"}} {
		p := start(t, slices.Concat(verb, echo)...)
		require.Equal(t, 0, p.status(), p.err.String())
		assert.Equal(t, "nodes=\n", p.out.String(), verb[0])
	}
	for _, verb := range [][]string{{"lock", "x"}, {"once", "o2"}, {"leader", "l"}} {
		p := start(t, slices.Concat(verb, []string{"--pass-nodes"}, echo)...)
		require.Equal(t, 0, p.status(), p.err.String())
		assert.Equal(t, "nodes="+os.Getenv("QUORATE_NODES")+"\n", p.out.String(), verb[0])
	}
}
