package core

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/link"
	"github.com/quorate/quorate/internal/script"
)

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
