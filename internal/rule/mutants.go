//go:build mutants

package rule

import (
	"sync/atomic"

	"github.com/quorate/quorate/internal/protocol"
)

var (
	off     atomic.Uint32 // the protocol.Rule
	offHere atomic.Uint64
)

// SwitchOff takes a rule out of every claim that is made until restore is
// called, to see on real servers what they prevent.
func SwitchOff(r protocol.Rule) (restore func()) {
	off.Store(uint32(r))
	return func() { off.Store(0) }
}

// SwitchOffOwn takes rules of the runtime out until restore is called.
func SwitchOffOwn(r Rule) (restore func()) {
	offHere.Store(uint64(r))
	return func() { offHere.Store(0) }
}

// Protocol are those of the protocol.
func Protocol() protocol.Rules { return protocol.Without(protocol.Rule(off.Load())) }

// On reports whether a rule is on.
func On(r Rule) bool { return Rule(offHere.Load())&r == 0 }
