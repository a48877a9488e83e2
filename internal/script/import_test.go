package script_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program that imports the package and connects to no node pays nothing for
// the scripts.
func TestImportBuildsNoScript(t *testing.T) {
	t.Parallel()
	self := exec.Command(os.Args[0], "-test.run=^$")
	self.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := self.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "init runtime")
	line := regexp.MustCompile(`(?m)^init github.com/quorate/quorate/internal/script @.* (\d+) bytes`).FindSubmatch(out)
	if line == nil {
		return // it has nothing to do
	}
	bytes, err := strconv.Atoi(string(line[1]))
	require.NoError(t, err)
	assert.Less(t, bytes, 10_000, "%s", line[0])
}
