package repair

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/lease"
)

// A client has the turn at a node for four node timeouts, 800 ms here. While it
// lists names it prolongs the turn early enough that a request which takes a
// whole node timeout still arrives in time. Otherwise a second client begins,
// and both bring the names.
func TestATurnIsProlongedInTime(t *testing.T) {
	t.Parallel()
	n, listed := newNodes(t), false
	n.list = func(int, string) ([]string, string, error) {
		require.Less(t, n.every+n.r.NodeTimeout, 800*time.Millisecond)
		n.again()
		require.Equal(t, "prolong 800ms -1", n.asked[len(n.asked)-1])
		listed = true
		return []string{"a"}, "0", nil
	}
	n.read = func(string) (lease.Outcome, error) {
		n.again()
		require.Equal(t, "prolong 800ms 1", n.asked[len(n.asked)-1])
		return lease.Settled, nil
	}
	assert.NotNil(t, n.attempt())
	assert.True(t, listed)
	assert.Nil(t, n.again, "nothing prolongs a turn that is given up")
	assert.Equal(t, "yield", n.asked[len(n.asked)-1])
}
