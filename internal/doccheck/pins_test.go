package doccheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	action = regexp.MustCompile(`\buses: *(\S+)(.*)`)
	pinned = regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40}$`)
	image  = regexp.MustCompile(`(?m)(?:^FROM|container:|image:) +(\S+)`)
	digest = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
	latest = regexp.MustCompile(`\S+@latest\b`)
)

// What the workflows and the image are made of is fixed: actions by commit with
// the version alongside it, images by digest, tools by version. Go's tip is the
// only exception, and nothing depends on that job. The servers under test are
// named by tag in a matrix: a user gets what the tag is today.
func TestWorkflowsArePinned(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	actions, images := 0, 0
	for _, path := range append(files, filepath.Join(root, "Dockerfile")) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, use := range action.FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(use[1], "./") {
				continue // of this repository
			}
			actions++
			assert.Regexp(t, pinned, use[1], path)
			assert.Regexp(t, `^ # v\d+\.\d+\.\d+$`, use[2], "%s: the version of %s", path, use[1])
		}
		for _, use := range image.FindAllStringSubmatch(string(text), -1) {
			images++
			assert.Regexp(t, digest, use[1], path)
		}
		for _, tool := range latest.FindAllString(string(text), -1) {
			assert.Equal(t, "golang.org/dl/gotip@latest", tool, path)
		}
	}
	assert.Greater(t, actions, 10)
	assert.GreaterOrEqual(t, images, 3)
}

// A release waits for the tests of its commit, and says what it is made of and
// who built it.
func TestReleaseIsTested(t *testing.T) {
	t.Parallel()
	release, err := os.ReadFile(filepath.Join(root, ".github/workflows/release.yml"))
	require.NoError(t, err)
	config, err := os.ReadFile(filepath.Join(root, ".goreleaser.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(release), "uses: ./.github/workflows/test.yml")
	assert.Contains(t, string(release), "needs: test")
	assert.Contains(t, string(release), "actions/attest-build-provenance@")
	assert.Contains(t, string(config), "\nsboms:\n")
}
