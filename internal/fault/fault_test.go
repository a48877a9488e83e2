package fault_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/fault"
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
