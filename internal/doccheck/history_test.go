package doccheck

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	testName   = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	mutantName = regexp.MustCompile(`mutant "([^"]+)"`)
)

// Invariant: whatever shows a fault again is found by its name. A test or a
// mutant that is renamed is renamed in the documents.
func TestNamedTestsExist(t *testing.T) {
	tests := testSources(t)
	for name, text := range documents(t) {
		for _, test := range testName.FindAllString(text, -1) {
			if !strings.Contains(tests, "func "+test+"(") {
				t.Errorf("%s names %s, which does not exist", name, test)
			}
		}
		for _, mutant := range mutantName.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(tests, `"`+mutant[1]+`"`) {
				t.Errorf("%s names the mutant %q, which does not exist", name, mutant[1])
			}
		}
	}
}

// testSources returns the text of all tests of the repository.
func testSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	}))
	return all.String()
}
