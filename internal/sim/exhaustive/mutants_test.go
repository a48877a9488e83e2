//go:build mutants && search

package exhaustive

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/testkit/mutant"
)

const (
	two    = "too many valid holders"
	tokens = "tokens do not rise"
)

// timeless keeps all within one moment.
func timeless(c *Config) { c.Units = 0 }

// mutants are worlds in which a rule is missing. The search must go wrong in
// each, in the way named, and on a shortest path of that many steps (passing
// time counts a step for each unit). With the rule back, the same world must
// hold as far as it was searched for the violation.
var mutants = []struct {
	name  string
	world Config
	rule  string
	off   model.Rules
	wrong string
	depth int
}{
	{name: "acknowledgements at any ticket", world: at(Mutex(2, false)),
		rule: "RuleExact", wrong: tokens, depth: 12},
	{name: "views outlive their lease", world: at(Mutex(2, false), prompt, cut),
		rule: "RuleLease", wrong: two, depth: 29},
	{name: "lost is not final", world: at(Mutex(2, false), beats(2)), rule: "RuleFinal",
		wrong: "A holds again what it had lost", depth: 11},
	{name: "attempts are never abandoned", world: at(Mutex(2, false), prompt, apart, restart),
		rule: "RuleAbandon", wrong: tokens, depth: 34},
	{name: "drift ignored", world: at(Mutex(3, false), beats(0), fastNode),
		rule: "RuleDrift", wrong: two, depth: 13},
	{name: "votes without counting", world: at(Semaphore(2), timeless),
		rule: "RuleCounting", wrong: two, depth: 15},
	{name: "leave only where the claim is known to be",
		world: at(Mutex(2, false), prompt, live), rule: "RuleLeaveAll",
		wrong: "something is left on a node without a holder", depth: 2},
	// A recovering node that takes claims back hides this breach in a world as
	// small as this one: the holder's claim is back before the second is
	// admitted. The rule is needed with it, too: the random schedules find its
	// mutant.
	{name: "holders do not re-check", world: at(Mutex(2, false), prompt, restart), rule: "RuleRecheck",
		off: model.Reclaim, wrong: two, depth: 57},
	{name: "no guard", world: at(Mutex(2, false), prompt, restart), off: model.Guard, wrong: two, depth: 11},
	{name: "settle gives a ticket twice", world: at(Mutex(2, true), prompt, fails(1)),
		off: model.Equality, wrong: tokens, depth: 23},
	{name: "settle does not refresh the lease", world: at(Mutex(2, false), prompt, fails(2)),
		off: model.SettleRefresh, wrong: two, depth: 19},
	{name: "the fence falls", world: at(Mutex(2, false)), off: model.MonotoneFence, wrong: tokens, depth: 12},
}

func TestExhaustiveMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			cfg := m.world
			cfg.Mutant, cfg.Off, cfg.MaxStates = m.rule != "", m.off, 3_000_000
			var off []string
			if cfg.Mutant {
				off = append(off, m.rule)
			}
			restore := mutant.Off(off...)
			bad := Run(cfg)
			restore()
			t.Log(bad)
			for _, line := range bad.Trace {
				t.Log("   ", line)
			}
			assert.Equal(t, m.wrong, bad.Wrong)
			assert.Equal(t, m.depth, bad.Depth)

			cfg.Mutant, cfg.Off, cfg.MaxStates = false, 0, bad.States
			good := Run(cfg)
			assert.Empty(t, good.Wrong, "%v", good.Trace)
		})
	}
}

// A guard shorter than a lease is no rule's fault.
func TestShortGuard(t *testing.T) {
	cfg := at(Mutex(2, false), prompt, cut, restart)
	cfg.Guard = cfg.TTL - 1
	r := Run(cfg)
	assert.Equal(t, two, r.Wrong, "%v", r)
	assert.Equal(t, 17, r.Depth)
}
