package peers

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/transport"
)

// A server that was a replica may forget that, without having lost anything.
func TestRunOfAServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		info      transport.Info
		run, want string
	}{
		{transport.Info{RunID: "a"}, "a", "a"},
		{transport.Info{RunID: "a", Former: "x"}, "a", "a+x"},
		{transport.Info{RunID: "a", Former: "y"}, "a+x", "a+y"},
		{transport.Info{RunID: "a"}, "a+x", "a+x"},
		{transport.Info{RunID: "b"}, "a+x", "b"},
		{transport.Info{}, "a+x", ""},
	} {
		assert.Equal(t, c.want, runOf(&c.info, "7 1000 "+c.run+" 5 6 w"))
	}
	assert.Equal(t, "a", runOf(&transport.Info{RunID: "a"}, ""))
}

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
