//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/lateness"
)

// onceStatus is what --status says, when the nodes have answered in time.
func onceStatus(t *testing.T, name string) (status int, out string) {
	t.Helper()
	var errs string
	require.Eventually(t, func() bool {
		status, out, errs = call("once", name, "--status")
		return status != cli.ExitNoQuorum
	}, 20*time.Second, 5*time.Millisecond, "%s", &errs)
	return status, out
}

// until is a shell's loop that ends when the file exists.
const until = `until [ -e "$0" ]; do sleep 0.02; done`

// Every replica runs the same line.
func TestOnce(t *testing.T) {
	startNodes(t, 3)
	ledger := filepath.Join(t.TempDir(), "ledger")
	const line = `echo "begin $QUORATE_TOKEN" >>"$0"; sleep 0.2; echo "end $QUORATE_TOKEN" >>"$0"; echo migrated`
	var ps []*proc
	for range 5 {
		ps = append(ps, start(t, "once", "migrate", "--", "sh", "-c", line, ledger))
	}
	ran := ""
	for _, p := range ps {
		require.Equal(t, 0, p.status(), p.err.String())
		if p.out.String() != "" {
			assert.Equal(t, "migrated\n", p.out.String())
			assert.Empty(t, p.err.String())
			ran = fmt.Sprintf(`"migrate" was done by process %d on `, p.cmd.Process.Pid)
		}
	}
	for _, p := range ps {
		if p.out.String() == "" {
			assert.Contains(t, p.err.String(), ran)
		}
	}
	text, err := os.ReadFile(ledger)
	require.NoError(t, err)
	lines := strings.Fields(string(text))
	require.Len(t, lines, 4, "once: %q", text)
	assert.Equal(t, lines[1], lines[3])

	status, out := onceStatus(t, "migrate")
	assert.Equal(t, 0, status)
	assert.Contains(t, out, ran)
	assert.Contains(t, out, "token "+lines[1])
	status, out, _ = call("once", "migrate", "--reset")
	assert.Equal(t, 0, status)
	assert.Contains(t, out, "marked as not done")
	status, out = onceStatus(t, "migrate")
	assert.Equal(t, 1, status)
	assert.Equal(t, "\"migrate\" is not done\n", out)
	p := start(t, "once", "migrate", "--keep", "24h", "--wait", "0", "--", "sh", "-c", line, ledger)
	assert.Equal(t, 0, p.status(), p.err.String())
	assert.Equal(t, "migrated\n", p.out.String())
	_, out = onceStatus(t, "migrate")
	assert.Contains(t, out, "and stays done until")
}

func TestOnceFails(t *testing.T) {
	startNodes(t, 3)
	file := filepath.Join(t.TempDir(), "go-on")
	first := start(t, "once", "x", "--", "sh", "-c", "echo in; "+until+"; exit 3", file)
	first.says("in")
	next := start(t, "once", "x", "--", "echo", "done by the next")
	waiting(t, "x")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.Equal(t, 3, first.status(), "the command's own")
	assert.Equal(t, 0, next.status(), next.err.String())
	assert.Equal(t, "done by the next\n", next.out.String())

	for command, want := range map[string]int{"no-such-command": 127, os.DevNull: 126} {
		p := start(t, "once", "y", "--", command)
		assert.Equal(t, want, p.status(), command)
		assert.NotEmpty(t, p.err.String())
	}
	p := start(t, "once", "y", "--durable", "--", "echo", "never")
	assert.Equal(t, cli.ExitNoQuorum, p.status())
	assert.Contains(t, p.err.String(), "appendonly is no")
	assert.Empty(t, p.out.String())
	status, _ := onceStatus(t, "y")
	assert.Equal(t, 1, status)
}

// waiting waits until another process waits for the work.
func waiting(t *testing.T, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, out := onceStatus(t, name)
		return strings.Contains(out, "1 waiting")
	}, 20*time.Second, 5*time.Millisecond)
}

func TestOnceNotInTime(t *testing.T) {
	ns := startNodes(t, 3)
	file := filepath.Join(t.TempDir(), "go-on")
	p := start(t, "once", "x", "--wait", "20s", "--", "sh", "-c", "echo in; "+until, file)
	p.says("in")
	for _, wait := range []string{"0", "2s"} {
		late := start(t, "once", "x", "--wait", wait, "--", "echo", "never")
		assert.Equal(t, cli.ExitHeld, late.status())
		assert.Contains(t, late.err.String(), fmt.Sprintf(`"x" is being done by process %d`, p.cmd.Process.Pid))
		assert.Empty(t, late.out.String())
	}
	status, out := onceStatus(t, "x")
	assert.Equal(t, 1, status)
	assert.Contains(t, out, "is being done by process "+strconv.Itoa(p.cmd.Process.Pid))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.Equal(t, 0, p.status())

	ns.Stop(0)
	ns.Stop(2)
	p = start(t, "once", "y", "--wait", "300ms", "--", "echo", "never")
	assert.Equal(t, cli.ExitNoQuorum, p.status())
	assert.Contains(t, p.err.String(), "no quorum")
	assert.NotContains(t, p.err.String(), "context")
	p = start(t, "once", "x", "--wait", "300ms", "--status")
	assert.Equal(t, cli.ExitNoQuorum, p.status())
}

func TestOnceLost(t *testing.T) {
	ns := startNodes(t, 3)
	p := start(t, "once", "x", "--ttl", "800ms", "--", "sh",
		"-c", `trap 'exit 0' TERM; echo held; while :; do sleep 0.05; done`)
	p.says("held")
	ns.Stop(0)
	ns.Stop(1)
	assert.Equal(t, cli.ExitLost, p.status(), "whatever the command says: it was ended")
	assert.Contains(t, p.err.String(), "is lost")
	require.NoError(t, ns.Restart(0))
	require.NoError(t, ns.Restart(1))
	status, _ := onceStatus(t, "x")
	assert.Equal(t, 1, status)
}

func TestOnceNotRecorded(t *testing.T) {
	ns := startNodes(t, 3)
	file := filepath.Join(t.TempDir(), "go-on")
	p := start(t, "once", "x", "--wait", "1s", "--", "sh", "-c", "echo in; "+until, file)
	p.says("in")
	ns.Stop(0)
	ns.Stop(1)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.Equal(t, cli.ExitLost, p.status())
	assert.Contains(t, p.err.String(), "done here, not recorded")
}

func TestOnceSignals(t *testing.T) {
	startNodes(t, 3)
	p := start(t, "once", "x", "--", "sh", "-c", `trap 'exit 7' TERM; echo in; while :; do sleep 0.05; done`)
	p.says("in")
	waits := start(t, "once", "x", "--", "echo", "never")
	waiting(t, "x")
	waits.signal(syscall.SIGINT)
	assert.Equal(t, 130, waits.status())
	assert.Empty(t, waits.out.String())
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 7, p.status(), "the command has decided what to do about it")
}

func TestOnceUsage(t *testing.T) {
	startNodes(t, 1)
	for _, args := range [][]string{
		{"once"}, {"once", "x"}, {"once", "x", "true"}, {"once", "x", "--"},
		{"once", "x", "--wait", "-1s", "--", "true"}, {"once", "x", "--grace", "-1s", "--", "true"},
		{"once", "x", "--keep", "1m", "--", "true"}, {"once", "x", "--keep", "-1h", "--", "true"},
		{"once", "x", "--keep", "1h0.5ms", "--", "true"},
		{"once", "x", "--status", "--reset"}, {"once", "x", "--status", "--", "true"}, {"once", "--reset"},
		{"once", "{x}", "--", "true"}, {"once", "", "--status"},
	} {
		status, out, errs := call(args...)
		assert.Equal(t, cli.ExitUsage, status, "%q: %q", args, errs)
		assert.True(t, strings.HasPrefix(errs, "quorate: "), "%q: %q", args, errs)
		assert.Empty(t, out, "%q", args)
	}
}

// A command repairs a node that lost its data, also one that ends at once: a
// fleet may consist of nothing but short commands.
func TestShortCommandRepairsANode(t *testing.T) {
	ns := startNodes(t, 3)
	o, err := redis.ParseURL(ns.URLs()[0])
	require.NoError(t, err)
	c := redis.NewClient(o)
	defer func() { _ = c.Close() }()
	text, err := c.Get(t.Context(), script.SetKey("quorate")).Result()
	require.NoError(t, err)
	set, ok := nodeset.ParseNodeSet(text)
	require.True(t, ok)
	key := script.HomeOf(set.Stamp()).Marker("quorate")
	marker, err := c.Get(t.Context(), key).Result()
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(marker, " w"))
	lateness.Undisturbed(t, func() error { // a node that answers late is not waited for
		for range 5 { // it must not be a matter of luck
			require.NoError(t, c.Set(t.Context(), key, strings.TrimSuffix(marker, " w"), 0).Err())
			p := start(t, "lock", "x", "--", "true")
			require.Equal(t, 0, p.status(), p.err.String())
			repaired := c.Get(t.Context(), key).Val() // it names the command's settings now
			if !strings.HasSuffix(repaired, " w") {
				return fmt.Errorf("not repaired: %s", repaired)
			}
			assert.Equal(t, strings.Fields(marker)[:3], strings.Fields(repaired)[:3], "the incarnation is the same")
		}
		require.NoError(t, c.Set(t.Context(), key, strings.TrimSuffix(marker, " w"), 0).Err())
		if p := start(t, "check"); p.status() != 0 {
			return fmt.Errorf("check says %q", &p.out)
		}
		return nil
	})
}
