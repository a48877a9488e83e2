package doccheck

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// place is where a block runs: a folder, programs that stand for others, and
// nodes.
type place struct {
	t     *testing.T
	dir   string
	bin   string
	nodes []string
	env   []string
}

func newPlace(t *testing.T, nodes ...string) *place {
	dir := t.TempDir()
	p := &place{t: t, dir: dir, bin: filepath.Join(dir, "bin"), nodes: nodes}
	require.NoError(t, os.Mkdir(p.bin, 0o755))
	require.NoError(t, os.Symlink(built(t), filepath.Join(p.bin, "quorate")))
	return p
}

// program puts a script there that others can run.
func (p *place) program(path, script string) {
	require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, path),
		[]byte("#!/usr/bin/env bash\nset -euo pipefail\n"+script), 0o755)) //nolint:gosec // it is to be run
}

// run runs a script, and returns what it printed.
func (p *place) run(script string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PATH="+p.bin+":"+os.Getenv("PATH"),
		"QUORATE_NODES="+strings.Join(p.nodes, ","))
	cmd.Env = append(cmd.Env, p.env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "%s\n%s", script, out)
	return string(out)
}

// shells are what is done with each block in sh: those of a document, in order.
var shells = map[string][]func(*testing.T, block){
	"README.md":                       {demonstrates, makes},
	"docs/reference/compatibility.md": {makes},
	"docs/operate/deploying.md":       {bootstraps},
	"docs/use/cron.md":                {repeats, schedules},
	"docs/use/limit.md":               {encodes},
	"docs/use/migrations.md":          {migrates},
	"docs/operate/operations.md":      {restarts, replaces},
	"docs/learn/testing.md":           {serves},
	"docs/internals/simulation.md":    {makes},
	"docs/internals/performance.md":   {makes},
	"CONTRIBUTING.md":                 {makes, makes},
}

// Each block in sh is run, as far as a test can, on real servers.
func TestShellBlocks(t *testing.T) {
	seen := map[string]int{}
	for _, b := range of(t, "sh") {
		require.Less(t, seen[b.name], len(shells[b.name]), "%v: nothing runs this block", b)
		check := shells[b.name][seen[b.name]]
		seen[b.name]++
		t.Run(b.String(), func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), "bash", "-n", "-c", b.text).CombinedOutput()
			require.NoError(t, err, string(out))
			check(t, b)
		})
	}
	for name, checks := range shells {
		assert.Equal(t, len(checks), seen[name], "blocks of %s", name)
	}
}

func demonstrates(t *testing.T, b block) {
	p := newPlace(t)
	assert.DirExists(t, filepath.Join(root, "cmd/quorate"))
	assert.Contains(t,
		p.run(strings.Replace(b.text, "go run ./cmd/quorate demo", "quorate demo --seconds 2", 1)), "worker")
}

// The README's program runs on a new server, and prints the lines that the
// README shows, and no others.
func TestFirstProgram(t *testing.T) {
	t.Parallel()
	ofReadme := func(lang string) block {
		all := of(t, lang)
		i := slices.IndexFunc(all, func(b block) bool { return b.name == "README.md" })
		require.NotEqual(t, -1, i, lang)
		return all[i]
	}
	program, printed := ofReadme("go"), ofReadme("text")
	urls := redistest.Start(t, 1).URLs()
	// Inside the module, so that it resolves the imports, and in no ./...
	dir, err := os.MkdirTemp(root, "_doccheck-")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "main.go")
	text := strings.Replace(program.text, "redis://localhost:6379", urls[0], 1)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
	require.NoError(t, err, string(out))
	want := regexp.MustCompile(`\d+`).ReplaceAllString(regexp.QuoteMeta(printed.text), `\d+`)
	assert.Regexp(t, "^"+strings.ReplaceAll(want, "…", ".*")+"$", string(out))
}

// encodes: the job gets a permit, and its token.
func encodes(t *testing.T, b block) {
	p := newPlace(t, redistest.Start(t, 3).URLs()...)
	p.run("quorate bootstrap --new")
	p.program("encode.sh", `echo "$(basename "$0") ran with ${QUORATE_TOKEN}"`)
	assert.Regexp(t, `encode.sh ran with \d{19}`, p.run(b.text))
}

// repeats: the job runs in this hour, until the shell ends it.
func repeats(t *testing.T, b block) {
	p := newPlace(t, redistest.Start(t, 3).URLs()...)
	p.run("quorate bootstrap --new")
	p.program("report.sh", `echo "$(basename "$0") ran with ${QUORATE_TOKEN}"`)
	const job = "quorate every report 1h -- ./report.sh\n"
	require.Contains(t, b.text, job)
	status := strings.Replace(b.text, job, "", 1)
	out := p.run(job[:len(job)-1] + " &\nuntil { " + status +
		"} | grep 'is done'; do sleep 0.1; done\nkill %1\n")
	assert.Regexp(t, `report.sh ran with \d{19}`, out)
}

// schedules: the line is understood. It is due for five minutes of a day.
func schedules(t *testing.T, b block) {
	p := newPlace(t, redistest.Start(t, 3).URLs()...)
	p.run("quorate bootstrap --new")
	p.program("backup.sh", "echo the backup")
	require.Contains(t, b.text, " -- ")
	assert.Regexp(t, "is not due|the backup", p.run(strings.Replace(b.text, " -- ", " --if-due -- ", 1)))
}

// migrates: of two replicas one runs each tool.
func migrates(t *testing.T, b block) {
	p := newPlace(t, redistest.Start(t, 3).URLs()...)
	p.run("quorate bootstrap --new")
	for _, name := range []string{"goose", "migrate", "atlas"} {
		p.program("bin/"+name, `echo "$(basename "$0") ran"`)
	}
	script := "URL=x\n" + b.text
	assert.Regexp(t, `(?s)^goose ran\n.*migrate ran\n.*atlas ran\n`, p.run(script))
	assert.NotContains(t, p.run(script), " ran\n")
}

// makes: each target exists, and each flag.
func makes(t *testing.T, b block) {
	flagged, err := os.ReadFile(filepath.Join(root, "internal/bench/settings.go"))
	require.NoError(t, err)
	for line := range strings.Lines(b.text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch strings.Join(words[:min(3, len(words))], " ") {
		case "cd internal/bench":
		case "go run .":
			for _, flag := range regexp.MustCompile(` -(\w+)`).FindAllStringSubmatch(line, -1) {
				assert.Contains(t, string(flagged), `"`+flag[1]+`"`, "%v: a flag of internal/bench", b)
			}
		case "go test -tags":
			require.DirExists(t, filepath.Join(root, words[len(words)-1]), b.String())
		default:
			require.Equal(t, "make", words[0], "%v: %s", b, line)
			cmd := exec.CommandContext(t.Context(), "sh", "-c", "make -n "+strings.TrimPrefix(line, "make "))
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			assert.NoError(t, err, "%s: %s", line, out)
		}
	}
}

// serves: go test finds the nodes.
func serves(t *testing.T, b block) {
	ports := consecutive(t)
	script := strings.NewReplacer("7001", ports[0], "7002", ports[1], "7003", ports[2]).Replace(b.text)
	p := newPlace(t)
	p.program("bin/go", `[ "$*" = "test ./..." ]
for _ in {1..100}; do if quorate check --all; then exit; fi; sleep 0.1; done
exit 1
`)
	out := p.run(script)
	assert.Contains(t, out, "3 of 3 nodes are ready")
}
