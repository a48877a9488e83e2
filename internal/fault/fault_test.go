package fault_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/resp"
)

// Nodes may have recorded two sets of one list. To say that the list A B is not
// A B helps nobody.
func TestListsThatAreEqual(t *testing.T) {
	t.Parallel()
	e := fault.SetError{List: []string{"a:1", "b:1"}, Set: []string{"b:1", "a:1"}, Since: time.Unix(0, 0)}
	assert.Contains(t, e.Error(), "have recorded more than one set of these addresses")
	assert.NotContains(t, e.Error(), "does not match its nodes")
	e.Set = []string{"a:1", "c:1"}
	assert.Contains(t, e.Error(), "does not match its nodes, which have formed the set a:1 c:1")
}

// Before Redis 7.0 an error of a command in a script has another code, and
// begins with the place in the script.
func TestRemediesOfOldServers(t *testing.T) {
	t.Parallel()
	for refusal, remedy := range map[string]string{
		"-OOM command not allowed when used memory > 'maxmemory'.": "raise that server's maxmemory",
		"-MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk. " +
			"Commands that may modify the data set are disabled": "free space on its disk",
		"-MISCONF Errors writing to the AOF file: No space left on device": "free space on its disk",
	} {
		err := resp.Error("ERR Error running script (call to f_0): @user_script:1: @user_script: 1: " + refusal)
		assert.Contains(t, fault.WriteRemedy(err), remedy)
	}
}
