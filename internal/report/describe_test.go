package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A field of INFO is one short line, whatever a node sends.
func TestFieldsOfInfoAreShortLines(t *testing.T) {
	t.Parallel()
	var n Node
	n.Describe("redis_version:7\tforged\r\nrole:mas\x1bter\r\nmaxmemory_policy:" + strings.Repeat("x", 1<<20) +
		"\r\n")
	assert.Equal(t, "7 forged", n.Version)
	assert.Equal(t, "mas ter", n.Role)
	assert.Less(t, len(n.Eviction), 1100)
}
