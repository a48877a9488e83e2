package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/link"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// A ticket that no clock can have given must not move this one: there would be no room for others above it.
func TestTicketOfTheFarFuture(t *testing.T) {
	var q Quorum
	q.saw(protocol.MaxTicket - 1)
	assert.Zero(t, q.seen.Load())
	skewed := protocol.Ticket(time.Now().Add(24 * time.Hour).UnixMicro())
	q.saw(skewed)
	assert.Equal(t, uint64(skewed), q.seen.Load(), "as far as a skew may be")
}

// Only a server that has written everything to its own disk has its memory after a restart.
func TestLossy(t *testing.T) {
	kept := link.Info{AOFEnabled: true, FsyncAlways: true}
	assert.Equal(t, script.Kept, lossy(kept))
	for what, change := range map[string]func(*link.Info){
		"no file":     func(i *link.Info) { i.AOFEnabled = false },
		"every sec":   func(i *link.Info) { i.FsyncAlways = false },
		"was replica": func(i *link.Info) { i.WasReplica = true },
	} {
		i := kept
		change(&i)
		assert.Equal(t, script.Lost, lossy(i), what)
	}
}
