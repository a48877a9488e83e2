//go:build mutants

package client

import (
	"fmt"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/rule"
)

// RuleHelp says which controls there are beside the fixed ones.
const RuleHelp = "or a rule of the library that is left out: votes-only, no-lease, no-recheck, no-incarnation, no-exact, no-drift, no-whole, no-later, no-repair, no-adopt, no-both, no-wait"

// rules are those whose absence real servers can show; the simulator shows all.
var rules = map[string]protocol.Rule{
	"votes-only":     protocol.RuleCounting,
	"no-lease":       protocol.RuleLease,
	"no-recheck":     protocol.RuleRecheck,
	"no-incarnation": protocol.RuleIncarnation,
	"no-exact":       protocol.RuleExact,
	"no-drift":       protocol.RuleDrift,
	"no-whole":       protocol.RuleAttest,
	"no-later":       protocol.RuleLater,
	"no-repair":      protocol.RuleRepair,
	"no-adopt":       protocol.RuleAdopt,
	ControlNoBoth:    protocol.RuleSetBoth,
	"no-wait":        protocol.RuleExchangeWait,
}

// WithoutRule leaves a rule out in this process.
func WithoutRule(name string) error {
	off, ok := rules[name]
	if !ok {
		return fmt.Errorf("there are none, unfenced, redsync, rival, %s", RuleHelp)
	}
	rule.SwitchOff(off)
	return nil
}
