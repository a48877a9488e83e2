package doccheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folder is where command has built; empty: it was not needed.
var folder string

// command builds the command, once.
var command = sync.OnceValues(func() (path string, err error) {
	if folder, err = os.MkdirTemp("", "doccheck-"); err != nil {
		return "", err
	}
	path = filepath.Join(folder, "quorate")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/quorate")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", &exec.Error{Name: string(out), Err: err}
	}
	return path, nil
})

func TestMain(m *testing.M) {
	status := m.Run()
	if folder != "" {
		_ = os.RemoveAll(folder)
	}
	os.Exit(status)
}

func built(t *testing.T) string {
	t.Helper()
	path, err := command()
	require.NoError(t, err)
	return path
}

// flags checks that a call of the command names a verb and flags that exist.
func flags(t *testing.T, where, call string) {
	t.Helper()
	call, _, _ = strings.Cut(call, " -- ")
	call, _, _ = strings.Cut(call, "#")
	call, _, _ = strings.Cut(call, ";")
	words := strings.Fields(call)
	if len(words) < 2 || len(words) < 3 && words[1] == "members" ||
		!regexp.MustCompile(`^[a-z]+$`).MatchString(words[1]) {
		return
	}
	verbs := words[1:2]
	if words[1] == "members" {
		verbs = words[1:3]
	}
	help, err := exec.CommandContext(t.Context(), built(t),
		append(verbs[:len(verbs):len(verbs)], "--help")...).CombinedOutput()
	assert.NoError(t, err, "%s: %s: no such verb", where, call)
	assert.Contains(t, string(help), "  quorate "+strings.Join(verbs, " ")+" ",
		"%s: %s: no such verb", where, call)
	for _, w := range words[2:] {
		w, _, _ = strings.Cut(w, "=")
		if long, ok := strings.CutPrefix(w, "--"); ok {
			assert.Regexp(t, `(?m)^ +(-\w, )?--`+regexp.QuoteMeta(long)+`\b`, string(help), "%s: %s", where, call)
		} else if short, ok := strings.CutPrefix(w, "-"); ok {
			assert.Regexp(t, `(?m)^ +-`+regexp.QuoteMeta(short)+`, `, string(help), "%s: %s", where, call)
		}
	}
}

// Each call of the command in the text exists.
func TestCallsOfTheCommand(t *testing.T) {
	t.Parallel()
	inline := regexp.MustCompile("`(quorate [^`\n]+)`")
	n := 0
	for name, text := range documents(t) {
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			n++
			flags(t, name, m[1])
		}
	}
	for _, b := range of(t, "sh") {
		for line := range strings.Lines(b.text) {
			if at := strings.Index(line, "quorate "); at >= 0 && !strings.HasPrefix(line, "go ") {
				n++
				flags(t, b.String(), strings.TrimSpace(line[at:]))
			}
		}
	}
	assert.Greater(t, n, 10)
}
