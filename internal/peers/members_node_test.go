package peers

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/setup"
)

// A client may meet a blank member before it has heard of the others.
func TestFirstVerdictOnABlankMember(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	ps := &Peers{Set: setup.Settings{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	ps.Members = &members{ps: ps, logged: map[int]nodeset.SetFault{}}
	h := &handshake{n: &Node{ps: ps, Addr: "a:1"}}
	h.logVerdict(nodeset.SetVerdict{Fault: nodeset.SetLost})
	assert.Empty(t, log.String())
	h.pause = 1
	h.logVerdict(nodeset.SetVerdict{Fault: nodeset.SetLost})
	assert.Contains(t, log.String(), "lost its data")
}
