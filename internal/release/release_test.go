package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A stranger with nothing but Go gets the library, the command, the modules
// under compat and what the examples need, as the tree is now.
func TestInstall(t *testing.T) {
	root, err := output("", "git", "rev-parse", "--show-toplevel")
	require.NoError(t, err)
	dir := copyTree(t, root)
	const version = "v1.999.0"
	require.NoError(t, requireVersion(dir, version))
	var out strings.Builder
	require.NoError(t, install(tree(dir), version, t.TempDir(), &out), out.String())
	for _, want := range []string{"mutex links", "rwmutex links", "semaphore links", "once links",
		"leader links", "quorate " + version} {
		assert.Contains(t, out.String(), want)
	}
	// The checksums that the release records are those that Go computes.
	want, err := sums(tree(dir), version)
	require.NoError(t, err)
	folders, err := modules(dir)
	require.NoError(t, err)
	for _, folder := range folders {
		mod, err := os.ReadFile(filepath.Join(dir, folder, "go.sum"))
		require.NoError(t, err)
		for _, line := range want {
			assert.Contains(t, string(mod), line, folder)
		}
	}
}

// What users install says nothing that go install refuses, and no version that
// will never exist. A library's other replacements do no harm: go ignores them.
func TestPublishedModules(t *testing.T) {
	root, err := output("", "git", "rev-parse", "--show-toplevel")
	require.NoError(t, err)
	folders, err := modules(root)
	require.NoError(t, err)
	require.Subset(t, folders, []string{command, "compat/cron", "compat/gocron", "compat/goose",
		"compat/migrate", "examples"})
	for _, folder := range append(folders, ".") {
		text, err := os.ReadFile(filepath.Join(root, folder, "go.mod"))
		require.NoError(t, err)
		assert.NotContains(t, string(text), library+" =>", folder)
		if folder != "examples" { // they are read and run in a clone: a relative replacement is well
			assert.NotContains(t, string(text), " v0.0.0\n", folder)
		}
	}
	dir := copyTree(t, root)
	for _, folder := range []string{"compat/gocron", command} {
		_, err := output(filepath.Join(dir, folder), "go", "mod", "edit", "-replace="+library+"=../..")
		require.NoError(t, err)
		assert.ErrorContains(t, requireVersion(dir, "v1.999.0"), "replaces "+library)
	}
}

func TestChangelog(t *testing.T) {
	now := time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC)
	const before = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- a thing\n\n## [0.1.0] - 2026-11-30\n\n- " +
		"the first\n"
	got, err := dateChangelog(before, "v0.2.0", now)
	require.NoError(t, err)
	assert.Equal(t, "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-24\n\n### Added\n\n- a thing\n\n## "+
		"[0.1.0] - 2026-11-30\n\n- the first\n", got)
	_, err = dateChangelog(got, "v0.3.0", now)
	assert.ErrorContains(t, err, "nothing to release")
	_, err = dateChangelog("# Changelog\n", "v0.3.0", now)
	assert.Error(t, err)
}

func TestVersions(t *testing.T) {
	for _, bad := range []string{"", "1.0.0", "v1", "v1.2", "latest", "v1.2.3+meta"} {
		assert.ErrorContains(t, ready(t.TempDir(), bad), "semantic version", bad)
	}
	assert.ErrorContains(t, ready(t.TempDir(), "v2.0.0"), "module path")
}

// The whole release in a clone: it is prepared, committed and tagged, the
// library first.
func TestTags(t *testing.T) {
	root, err := output("", "git", "rev-parse", "--show-toplevel")
	require.NoError(t, err)
	dir := copyTree(t, root)
	require.NoError(t, prepare(dir, "v1.999.0", time.Now()))
	tags, err := tag(dir, "v1.999.0")
	require.NoError(t, err)
	at, err := output(dir, "git", "tag", "--points-at", "HEAD")
	require.NoError(t, err)
	assert.ElementsMatch(t, strings.Fields(at), tags)
	assert.Equal(t, "v1.999.0", tags[0])
	assert.Subset(t, tags, []string{"cmd/quorate/v1.999.0", "compat/gocron/v1.999.0"})
	assert.NotContains(t, tags, "examples/v1.999.0")
	assert.ErrorContains(t, ready(dir, "v1.999.0"), "is there already")
	for _, folder := range []string{command, "compat/gocron", "examples"} {
		mod, err := output(dir, "git", "show", "HEAD:"+folder+"/go.mod")
		require.NoError(t, err)
		assert.Contains(t, mod, library+" v1.999.0")
	}
}

// A rehearsal needs no identity of git's. A release without one is refused, and
// the error says what to do.
func TestWithoutAnIdentity(t *testing.T) {
	root, err := output("", "git", "rev-parse", "--show-toplevel")
	require.NoError(t, err)
	dir := copyTree(t, root)
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	for _, key := range []string{"user.name", "user.email"} {
		_, err := output(dir, "git", "config", "--unset", key)
		require.NoError(t, err)
	}
	assert.ErrorContains(t, identify(dir, dir, true), "git config user.")
	require.NoError(t, identify(dir, dir, false))
	require.NoError(t, prepare(dir, "v1.999.0", time.Now()))
	_, err = tag(dir, "v1.999.0")
	require.NoError(t, err)
}

// copyTree makes a repository of the files as they are now, committed or not.
func copyTree(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	list, err := output(root, "git", "ls-files", "--cached", "--others", "--exclude-standard")
	require.NoError(t, err)
	for path := range strings.Lines(list) {
		path = strings.TrimSpace(path)
		text, err := os.ReadFile(filepath.Join(root, path))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), text, 0o644))
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"config", "user.name", "test"}, {"config", "user.email", "test@example.com"},
		{"add", "-A"}, {"commit", "-q", "-m", "the tree as it is"},
	} {
		_, err := output(dir, "git", args...)
		require.NoError(t, err)
	}
	return dir
}
