package client

import (
	"fmt"

	"github.com/quorate/quorate/internal/testkit/mutant"
)

// RuleHelp lists the controls that exist in addition to the fixed ones.
const RuleHelp = "or, in a build with the overlay of the mutants, a rule of the library that is left out: " +
	"votes-only, no-lease, no-recheck, no-incarnation, no-exact, no-drift, no-whole, no-later, no-repair, " +
	"no-adopt, no-both, no-wait"

// rules are the rules whose absence shows on real servers. The simulator shows
// all of them.
var rules = map[string]string{
	"votes-only":     "RuleCounting",
	"no-lease":       "RuleLease",
	"no-recheck":     "RuleRecheck",
	"no-incarnation": "RuleIncarnation",
	"no-exact":       "RuleExact",
	"no-drift":       "RuleDrift",
	"no-whole":       "RuleAttest",
	"no-later":       "RuleLater",
	"no-repair":      "RuleRepair",
	"no-adopt":       "RuleAdopt",
	ControlNoBoth:    "RuleSetBoth",
	"no-wait":        "RuleExchangeWait",
}

// WithoutRule disables a rule in this process.
func WithoutRule(name string) error {
	rule, ok := rules[name]
	if !ok || !mutant.Overlaid {
		return fmt.Errorf("there are none, unfenced, redsync, rival, %s", RuleHelp)
	}
	mutant.Off(rule)
	return nil
}
