//go:build mutants

package core

import (
	"sync/atomic"

	"github.com/quorate/quorate/internal/protocol"
)

var off atomic.Uint64

// SwitchOff takes rules out of every claim that is made until restore is
// called, to see on real servers what they prevent.
func SwitchOff(r protocol.Rule) (restore func()) {
	off.Store(uint64(r))
	return func() { off.Store(0) }
}

func rules() protocol.Rules { return protocol.Without(protocol.Rule(off.Load())) }
