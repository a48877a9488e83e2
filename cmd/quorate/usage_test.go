package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// A command that does not exist is an error, with --help too, and the nearest
// ones are named.
func TestUnknownCommand(t *testing.T) {
	for _, c := range []struct{ args, why string }{
		{"lokc", `unknown command "lokc": did you mean lock? (quorate --help lists all)`},
		{"lokc --help", "did you mean lock?"},
		{"--help lokc", "did you mean lock?"},
		{"help lokc", "did you mean lock?"},
		{"monitor", "did you mean top?"},
		{"follow", "did you mean watch?"},
		{"xyzzy --help", `unknown command "xyzzy" (quorate --help lists all)`},
		{"members lits", `unknown command "lits": did you mean list? (quorate members --help lists all)`},
		{"members lits --help", "did you mean list?"},
	} {
		status, out, errs := call(strings.Fields(c.args)...)
		assert.Equal(t, cli.ExitUsage, status, c.args)
		assert.Contains(t, errs, c.why, c.args)
		assert.Empty(t, out, c.args)
	}
	for _, args := range []string{"help lock", "lock --help", "members list --help", "help members list",
		"completion bash", "__complete lo"} {
		status, out, errs := call(strings.Fields(args)...)
		assert.Equal(t, 0, status, "%s: %s", args, errs)
		assert.NotEmpty(t, out, args)
	}
}

// One error names all that is missing, and the whole line.
func TestMissing(t *testing.T) {
	for args, want := range map[string]string{
		"lock":                "lock: missing NAME, --, CMD: quorate lock NAME -- CMD [ARG...]",
		"lock x":              "lock: missing --, CMD: ",
		"lock --":             "lock: missing NAME, CMD: ",
		"lock x true":         "lock: put -- before the command to run: ",
		"lock x y -- true":    "lock: want 1 word before --, got 2: ",
		"sem":                 "sem: missing NAME, -n PERMITS, --, CMD: quorate sem NAME -n PERMITS -- CMD [ARG...]",
		"every":               "every: missing NAME, PERIOD, --, CMD: quorate every NAME PERIOD -- CMD [ARG...]",
		"every x -- true":     "every: missing PERIOD: ",
		"every 1h x -- true":  "every: the name comes before the period: quorate every x 1h",
		"every 1h x --status": "every: the name comes before the period: quorate every x 1h",
	} {
		status, _, errs := call(strings.Fields(args)...)
		assert.Equal(t, cli.ExitUsage, status, args)
		assert.Contains(t, errs, want, args)
	}
}

// The flags that matter come first, and those that every command has come last.
func TestHelpOfFlags(t *testing.T) {
	_, out, _ := call("lock", "--help")
	own, shared, found := strings.Cut(out, "\nConnection flags:\n")
	require.True(t, found, out)
	_, own, found = strings.Cut(own, "\nFlags:\n")
	require.True(t, found, out)
	assert.Regexp(t, `(?s)^ +--wait .* --grace .* --ttl .* --owner .* -q, --quiet `, own)
	for _, f := range []string{"--nodes", "--config", "--prefix", "--guard", "--username-file",
		"--password-file", "--tls-ca", "--tls-cert", "--tls-key"} {
		assert.Contains(t, shared, f+" ")
		assert.NotContains(t, own, f+" ")
	}
	assert.True(t, strings.HasPrefix(strings.TrimSpace(shared), "--nodes "), shared)
	_, out, _ = call("bootstrap", "--help")
	own, _, _ = strings.Cut(out, "\nConnection flags:\n")
	assert.Contains(t, own, "--guard ", "it is what the command records")
	for _, verb := range []string{"lock", "sem", "once", "leader", "every"} {
		_, out, _ = call(verb, "--help")
		assert.Contains(t, out, signalHelp, verb)
	}
}

func TestInspectHeld(t *testing.T) {
	startNodes(t, 3)
	status, out, errs := call("inspect", "x", "--held")
	assert.Equal(t, 1, status, errs)
	assert.Contains(t, out, `"x": not in use`)
	p := start(t, "lock", "x", "--", "sh", "-c", "echo in; sleep 60")
	p.says("in")
	status, _, errs = call("inspect", "x", "--held")
	assert.Equal(t, 0, status, errs)
}

// A node that is down is no matter of a command that succeeds: cron would mail
// the line each time. It is told once when too few nodes are left.
func TestOnlyWhatMattersIsSaid(t *testing.T) {
	ns := startNodes(t, 3)
	ns.Stop(0)
	for _, verb := range [][]string{{"lock", "a"}, {"sem", "b", "-n", "2"}, {"once", "c"}, {"leader", "d"}} {
		p := start(t, append(verb, "--", "sh", "-c", "sleep 0.3")...) // long enough to see that the node is down
		assert.Equal(t, 0, p.status(), verb)
		assert.Empty(t, p.err.String(), verb)
	}
	p := start(t, "once", "c", "--", "true")
	assert.Equal(t, 0, p.status())
	assert.Contains(t, p.err.String(), "was done by process")
	p = start(t, "once", "c", "-q", "--", "true")
	assert.Equal(t, 0, p.status())
	assert.Empty(t, p.err.String())

	ns.Stop(1)
	p = start(t, "lock", "a", "--", "true")
	require.Eventually(t, func() bool {
		return strings.Contains(p.err.String(), "1 of 3 nodes connected, 0 can vote, 2 needed")
	}, 20*time.Second, 5*time.Millisecond, &p.err)
	assert.NotContains(t, p.err.String(), "node is down")
	p = start(t, "lock", "a", "-q", "--wait", "3s", "--", "true")
	assert.Equal(t, cli.ExitNoQuorum, p.status())
	assert.Len(t, lines(&p.err), 1, &p.err)
	assert.Contains(t, p.err.String(), "no quorum")
}

// A loss is one line, whatever the library logs.
func TestALossIsOneLine(t *testing.T) {
	ns := startNodes(t, 3)
	p := start(t, "lock", "x", "--ttl", "800ms", "--", "sh", "-c", "echo held; exec sleep 60")
	p.says("held")
	ns.Stop(0)
	ns.Stop(1)
	assert.Equal(t, cli.ExitLost, p.status())
	var lost []string
	for _, line := range lines(&p.err) {
		if strings.Contains(line, "lost") {
			lost = append(lost, line)
		}
	}
	require.Len(t, lost, 1, &p.err)
	assert.Regexp(t, `^quorate: the lock "x" \(token \d+\) is lost: .*; ending the command$`, lost[0])
	assert.NotContains(t, lost[0], "context")
}

func lines(o *output) []string { return strings.Split(strings.TrimSuffix(o.String(), "\n"), "\n") }

func TestHelp(t *testing.T) {
	status, out, _ := call()
	assert.Equal(t, 0, status)
	assert.Contains(t, out, "demo")
	assert.NotContains(t, out, "demo-worker")
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}} {
		p := start(t, args...)
		require.Equal(t, 0, p.status(), p.err.String())
		assert.Regexp(t, `^quorate \S+ go1\.\S+ \w+/\w+( revision .*)?\n$`, p.out.String())
	}
	p := start(t, "--help")
	require.Equal(t, 0, p.status())
	assert.Regexp(t, `(?m)^  completion +\w`, p.out.String(), "how to get shell completion")
}
