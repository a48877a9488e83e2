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
		ps = append(ps, start(t, "every", "report", "100ms", "--", "sh", "-c",
			`echo "$QUORATE_PERIOD $QUORATE_TOKEN" >>"$0"`, ledger))
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
		p := start(t, append(args, "--", "sh",
			"-c", `echo run >>"$0"; [ $(wc -l <"$0") -ge 2 ] || exit 3`, file)...)
		lines := 1
		if retry {
			lines = 2
		}
		fileWith(t, file, lines)
		require.Eventually(t, func() bool {
			return strings.Contains(p.err.String(), "the command ended with status 3")
		}, 20*time.Second, 5*time.Millisecond)
		p.signal(syscall.SIGINT)
		assert.Equal(t, 128+2, p.status(), p.err.String())
	}
	_, out, _ := call("every", "fails", "8760h", "--status")
	assert.Contains(t, out, `"fails" is failed in the period from`)
}

// A signal is the command's, too, and ends the waiting for the next period.
func TestEveryIsEnded(t *testing.T) {
	startNodes(t, 3)
	p := start(t, "every", "x", "24h", "--", "sh", "-c",
		`trap 'echo bye; exit 0' TERM; echo in; while :; do sleep 0.02; done`)
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
		{"every", "x", "1h"}, {"every", "--", "x", "1h", "true"}, {"every", "x", "1h", "--"},
		{"every", "x", "1d", "--", "true"},
		{"every", "x", "1ms", "--", "true"}, {"every", "x", "1h", "--json", "--", "true"},
		{"every", "x", "1h", "--grace", "-1s", "--", "true"},
		{"every", "x", "1h", "--status", "--", "true"},
		{"every", "{x}", "1h", "--nodes", "127.0.0.1:1", "--status", "y"},
	} {
		status, _, errs := call(args...)
		assert.Equal(t, cli.ExitUsage, status, "%v: %s", args, errs)
		assert.NotEmpty(t, errs)
	}
	for args, want := range map[string]string{
		"0 2 30 2 *": "never fires", "0 25 * * *": "five fields: minute, hour",
		"@every 1h":             "pass the length alone",
		"CRON_TZ=UTC 0 2 * * *": "with --zone", "0 2 * * *|--zone|Nowhere/City": "time zone database",
		"1h|--zone|UTC": "need a crontab line",
		"1h|--catch-up": "need a crontab line", "1h|--offset|1h": "less than the period",
		"1d":           "a crontab line in quotes",
		"1h|--wait|1s": "--wait needs --if-due", "1h|--if-due|--wait|0s": "must be positive",
	} {
		args := append(append([]string{"every", "x"}, strings.Split(args, "|")...), "--", "true")
		status, _, errs := call(args...)
		assert.Equal(t, cli.ExitUsage, status, "%v: %s", args, errs)
		assert.Contains(t, errs, want)
	}
	startNodes(t, 1)
	status, _, errs := call("every", "{x}", "1h", "--", "true")
	assert.Equal(t, cli.ExitUsage, status, errs)
}

// With --if-due, as in every host's crontab: one of three runs it, and the
// others end with 0. Its own status is that of the line.
func TestEveryIfDue(t *testing.T) {
	startNodes(t, 3)
	ledger := filepath.Join(t.TempDir(), "ledger")
	for _, period := range []string{"24h", "* * * * *"} {
		due, notDue := 0, 0
		var ps []*proc
		for range 3 {
			ps = append(ps, start(t, "every", period, period, "--if-due", "--", "sh", "-c",
				`echo "$QUORATE_PERIOD" >>"$0"; exit 3`, ledger))
		}
		for _, p := range ps {
			switch status := p.status(); {
			case status == 3:
				due++
			case assert.Equal(t, 0, status, p.err.String()):
				assert.Contains(t, p.err.String(), "is not due")
				notDue++
			}
		}
		assert.Equal(t, 3, due+notDue)
		assert.Equal(t, due, len(fileWith(t, ledger, 1)), "each run is of another period")
		assert.Positive(t, due)
		require.NoError(t, os.Remove(ledger))
	}
	status, _, errs := call("every", "24h", "24h", "--if-due", "-q", "--", "no-such-command")
	assert.Equal(t, 0, status)
	assert.Empty(t, errs)
	p := start(t, "every", "other", "24h", "--if-due", "--", "no-such-command")
	assert.Equal(t, 127, p.status(), p.err.String())
}

// It gives up when the nodes do not answer, and passes signals on.
func TestEveryIfDueEnds(t *testing.T) {
	ns := startNodes(t, 3)
	p := start(t, "every", "x", "24h", "--if-due", "--wait", "10s", "--", "sh", "-c",
		`trap 'echo bye; exit 5' TERM; echo in; while :; do sleep 0.02; done`)
	p.says("in")
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 5, p.status(), p.err.String())
	ns.Stop(0)
	ns.Stop(1)
	p = start(t, "every", "x", "24h", "--if-due", "--wait", "1s", "--", "true")
	assert.Equal(t, cli.ExitNoQuorum, p.status(), p.err.String())
}

// A crontab line, in a zone: no two processes have the same minute.
func TestEveryCrontabLine(t *testing.T) {
	startNodes(t, 3)
	ledger := filepath.Join(t.TempDir(), "ledger")
	for range 3 { // the minute that has begun is in time
		start(t, "every", "report", "* * * * *", "--zone", "Europe/Berlin", "--catch-up", "--", "sh", "-c",
			`echo "$QUORATE_PERIOD" >>"$0"`, ledger)
	}
	seen := map[string]bool{}
	for _, at := range fileWith(t, ledger, 1) {
		assert.False(t, seen[at], at)
		seen[at] = true
		start, err := time.Parse(time.RFC3339, at)
		require.NoError(t, err)
		assert.Zero(t, start.Second())
	}
	status, out, errs := call("every", "report", "* * * * *", "--status")
	assert.Equal(t, 0, status, errs)
	assert.Contains(t, out, `"report" `)
}
