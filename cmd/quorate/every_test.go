//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// fileWith waits until a file has so many lines, and returns them.
func fileWith(t *testing.T, name string, lines int) []string {
	t.Helper()
	var all []string
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(name)
		all = strings.Split(strings.TrimSpace(string(text)), "\n")
		return err == nil && len(text) > 0 && len(all) >= lines
	}, 30*time.Second, 5*time.Millisecond, "%s", &all)
	return all
}

// Every replica runs the same line. No period has two runs, of rising tokens.
func TestEvery(t *testing.T) {
	startNodes(t, 3)
	status, out, errs := call("every", "report", "100ms", "--status")
	assert.Equal(t, 1, status, errs)
	assert.Equal(t, "\"report\" has not run yet\n", out)
	ledger := filepath.Join(t.TempDir(), "ledger")
	var ps []*proc
	for range 3 {
		ps = append(ps, start(t, "every", "report", "100ms", "--", "sh", "-c", `echo "$QUORATE_PERIOD $QUORATE_TOKEN" >>"$0"`, ledger))
	}
	fileWith(t, ledger, 20)
	for _, p := range ps {
		p.signal(syscall.SIGTERM)
		assert.Equal(t, 128+15, p.status(), p.err.String())
	}
	seen, token := map[string]bool{}, ""
	for _, line := range fileWith(t, ledger, 20) {
		f := strings.Fields(line)
		require.Len(t, f, 2, line)
		assert.False(t, seen[f[0]], "two runs in %s", f[0])
		assert.Greater(t, f[1], token)
		seen[f[0]], token = true, f[1]
		start, err := time.Parse(time.RFC3339, f[0])
		require.NoError(t, err)
		assert.Zero(t, start.UnixMilli()%100)
	}
	status, out, errs = call("every", "report", "100ms", "--status")
	assert.Equal(t, 0, status, errs)
	assert.Regexp(t, `^"report" (is|began|runs)`, out) // the signal may have come in the middle of a run
	status, out, errs = call("every", "report", "100ms", "--status", "--json")
	assert.Equal(t, 0, status, errs)
	var last struct{ State, Start, Token string }
	require.NoError(t, json.Unmarshal([]byte(out), &last), out)
	assert.NotEmpty(t, last.Start)
	assert.NotEmpty(t, last.Token)
}

// A command that fails is said, and repeated only if asked.
func TestEveryFails(t *testing.T) {
	startNodes(t, 3)
	for _, retry := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "runs")
		args := []string{"every", "fails", "8760h"}
		if retry {
			args = []string{"every", "fails again", "20s", "--retry"}
		}
		p := start(t, append(args, "--", "sh", "-c", `echo run >>"$0"; [ $(wc -l <"$0") -ge 2 ] || exit 3`, file)...)
		lines := 1
		if retry {
			lines = 2
		}
		fileWith(t, file, lines)
		require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "the command ended with status 3") }, 20*time.Second, 5*time.Millisecond)
		p.signal(syscall.SIGINT)
		assert.Equal(t, 128+2, p.status(), p.err.String())
	}
	_, out, _ := call("every", "fails", "8760h", "--status")
	assert.Contains(t, out, `"fails" is failed in the period from`)
}

// A signal is the command's, too, and ends the waiting for the next period.
func TestEveryIsEnded(t *testing.T) {
	startNodes(t, 3)
	p := start(t, "every", "x", "24h", "--", "sh", "-c", `trap 'echo bye; exit 0' TERM; echo in; while :; do sleep 0.02; done`)
	p.says("in")
	status, out, errs := call("every", "x", "24h", "--status")
	assert.Equal(t, 0, status, errs)
	assert.Contains(t, out, `"x" is running in the period from`)
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 128+15, p.status(), p.err.String())
	assert.Contains(t, p.out.String(), "bye")
	p = start(t, "every", "y", "24h", "--", "no-such-command")
	assert.Equal(t, 127, p.status(), p.err.String())
}

func TestEveryUsage(t *testing.T) {
	for _, args := range [][]string{
		{"every", "x", "1h"}, {"every", "--", "x", "1h", "true"}, {"every", "x", "1h", "--"}, {"every", "x", "1d", "--", "true"},
		{"every", "x", "1ms", "--", "true"}, {"every", "x", "1h", "--json", "--", "true"}, {"every", "x", "1h", "--grace", "-1s", "--", "true"},
		{"every", "x", "1h", "--status", "--", "true"}, {"every", "{x}", "1h", "--nodes", "127.0.0.1:1", "--status", "y"},
	} {
		status, _, errs := call(args...)
		assert.Equal(t, cli.ExitUsage, status, "%v: %s", args, errs)
		assert.NotEmpty(t, errs)
	}
	startNodes(t, 1)
	status, _, errs := call("every", "{x}", "1h", "--", "true")
	assert.Equal(t, cli.ExitUsage, status, errs)
}
