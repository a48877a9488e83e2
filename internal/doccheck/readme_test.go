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

// Each time that the README gives is a cell of docs/internals/performance.md.
func TestSpeedIsThatOfTheDocument(t *testing.T) {
	texts := documents(t)
	figures := regexp.MustCompile(`(\d+) µs`).FindAllStringSubmatch(texts["README.md"], -1)
	require.NotEmpty(t, figures)
	for _, f := range figures {
		assert.Contains(t, texts["docs/internals/performance.md"], "| "+f[1]+" |", f[0])
	}
}

// The workflow tests what the documents call supported.
func TestSupportedVersions(t *testing.T) {
	workflow, err := os.ReadFile(filepath.Join(root, ".github/workflows/test.yml"))
	require.NoError(t, err)
	images := map[string]string{"Redis": "redis:", "Valkey": "valkey/valkey:"}
	n := 0
	for _, cells := range table(t, "docs/reference/compatibility.md", "Supported versions") {
		if images[cells[0]] != "" {
			for _, version := range strings.Split(cells[1], ", ") {
				assert.Regexp(t, `"`+images[cells[0]]+regexp.QuoteMeta(version)+`(\.0)?"`, string(workflow))
				n++
			}
		}
	}
	assert.Equal(t, 4, n)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	assert.Contains(t, string(mod), "\ngo 1.26")
	assert.Contains(t, string(workflow), "gotip")
}
