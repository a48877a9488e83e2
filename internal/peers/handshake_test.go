package peers

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/resp"
)

// A server that does not answer INFO with its run says so in its own words, and
// the error has the remedy for that answer.
func TestServerWithoutInfo(t *testing.T) {
	t.Parallel()
	for answer, says := range map[resp.Error]string{
		"ERR section (server) is not supported":                          "quoratetest",
		"ERR unknown command 'INFO', with args beginning with: 'server'": "rename-command",
		"NOPERM this user has no permissions to run the 'info' command":  "grant +info",
		"": "miniredis cannot be a node",
	} {
		err := fault.NoInfo(answer)
		assert.ErrorIs(t, err, fault.ErrNoInfo)
		assert.ErrorContains(t, err, says)
		assert.ErrorContains(t, err, string(answer))
	}
}
