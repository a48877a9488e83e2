//go:build !mutants

package rule

import "github.com/quorate/quorate/internal/protocol"

// Protocol are the rules of the protocol, all of them.
func Protocol() protocol.Rules { return protocol.Rules{} }

// On reports whether a rule is on: each is.
func On(Rule) bool { return true }
