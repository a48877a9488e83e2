package peers

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
