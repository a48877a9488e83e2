package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The image can be built: the first stage's RUN lines succeed on exactly the
// files that .dockerignore leaves, and leave the command where the second stage
// takes it from. The base images are taken on trust, as this needs no engine.
func TestImage(t *testing.T) {
	root, err := output("", "git", "rev-parse", "--show-toplevel")
	require.NoError(t, err)
	dir := t.TempDir()
	src, binary := filepath.Join(dir, "src"), filepath.Join(dir, "quorate")
	copyContext(t, root, src)
	for _, line := range buildStage(t, root) {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "FROM", "WORKDIR": // what a test cannot follow, and need not
		case "COPY":
			require.Equal(t, ". .", rest, "the test knows a context that is copied as a whole")
		case "RUN":
			require.Contains(t, rest, "-o /quorate ")
			run := exec.CommandContext(t.Context(), "sh",
				"-ec", strings.Replace(rest, "-o /quorate ", "-o "+binary+" ", 1))
			run.Dir = src
			text, err := run.CombinedOutput()
			require.NoError(t, err, "%s\n%s", line, text)
		default:
			require.Fail(t, "the test does not know "+word)
		}
	}
	says, err := output(dir, binary, "version")
	require.NoError(t, err)
	assert.Regexp(t, `^quorate \S+ go1\.`, says)
}

// buildStage returns the instructions of the Dockerfile's first stage.
func buildStage(t *testing.T, root string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "FROM ") && len(lines) > 0 {
			return lines
		}
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	require.Fail(t, "there is no second stage")
	return nil
}

// copyContext copies what a build sends to the engine.
func copyContext(t *testing.T, from, to string) {
	t.Helper()
	list, err := os.Open(filepath.Join(from, ".dockerignore"))
	require.NoError(t, err)
	defer list.Close()
	patterns, err := ignorefile.ReadAll(list)
	require.NoError(t, err)
	ignored, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir // no pattern lets it in, and it is large
		}
		name, err := filepath.Rel(from, path)
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if skip, err := ignored.MatchesOrParentMatches(name); err != nil || skip {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, 0o644)
	}))
}
