package protocol

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The runtime makes a node that enters before the Client counts on it. A call
// that comes between these two may ask for it: without the rule the process
// panics.
func TestNodeThatTheClientDoesNotKnowYet(t *testing.T) {
	t.Parallel()
	c := NewClient(ClientConfig{Nodes: 3})
	assert.Equal(t, -1, c.Duplicate(3))
	assert.True(t, c.Attempted(3))
}
