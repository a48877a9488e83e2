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
	rows := regexp.MustCompile(`(?m)^\|(?:Time \(redsync=1\), 1 node|… 3 nodes)\|.*$`).FindAllString(texts["README.md"], -1)
	require.Len(t, rows, 2)
	_, stated, found := strings.Cut(texts["docs/internals/performance.md"], "README's table takes its ratios")
	require.True(t, found)
	stated, _, _ = strings.Cut(stated, "\n\n")
	for _, row := range rows {
		figures := regexp.MustCompile(`\d+\.\d+(?:–\d+\.\d+)?`).FindAllString(row, -1)
		require.NotEmpty(t, figures, row)
		for _, f := range figures {
			assert.Contains(t, stated, "at "+f, row)
		}
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
