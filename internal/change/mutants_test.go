//go:build mutants

package change_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/testkit/findings"
)

// The rules that the simulator does not run each have a test that finds that it
// is missing.
func TestMutants(t *testing.T) {
	for _, m := range []struct {
		name string
		rule protocol.Rule
		test func(assert.TestingT, protocol.Rules)
	}{
		{"a member counts that does not answer any more", protocol.RuleExchangeSilent, countsSilent},
		{"what is given up is over before the register was read", protocol.RuleExchangeRead, undoesWhatWasRead},
		{"a majority is seen to serve one by one", protocol.RuleExchangeStays, staysMoved},
		{"a majority counts that has its move in memory only", protocol.RuleExchangeSaved, staysSaved},
	} {
		var f findings.Findings
		m.test(&f, protocol.Without(m.rule))
		assert.NotZero(t, f.N, m.name)
	}
}

// Each constant of an exchange has a test that finds half of it and twice it.
func TestMutantsOfConstants(t *testing.T) {
	t.Parallel()
	for _, c := range constants {
		for name, rules := range map[string]protocol.Rules{"half": protocol.Halved(c.of), "twice": protocol.Doubled(c.of)} {
			var f findings.Findings
			c.test(&f, rules)
			assert.NotZero(t, f.N, "%s of constant %d", name, c.of)
		}
	}
	assert.Len(t, constants, int(protocol.Constants))
}
