//go:build mutants

package change_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/testkit/findings"
	"github.com/quorate/quorate/internal/testkit/mutant"
)

// The rules that the simulator does not run each have a test that finds that it
// is missing.
func TestMutants(t *testing.T) {
	for _, m := range []struct {
		name string
		rule string
		test func(assert.TestingT)
	}{
		{"a member counts that does not answer any more", "RuleExchangeSilent", countsSilent},
		{"what is given up is over before the register was read", "RuleExchangeRead", undoesWhatWasRead},
		{"a majority is seen to serve one by one", "RuleExchangeStays", staysMoved},
		{"a majority counts that has its move in memory only", "RuleExchangeSaved", staysSaved},
	} {
		var f findings.Findings
		restore := mutant.Off(m.rule)
		m.test(&f)
		restore()
		assert.NotZero(t, f.N, m.name)
	}
}

// Each constant of an exchange has a test that finds half of it and twice it.
func TestMutantsOfConstants(t *testing.T) {
	var of []string
	for _, c := range constants {
		for _, by := range []string{"half.", "twice."} {
			var f findings.Findings
			restore := mutant.Off(by + c.of)
			c.test(&f)
			restore()
			assert.NotZero(t, f.N, "%s%s", by, c.of)
		}
		of = append(of, c.of)
	}
	var all []string
	for _, r := range mutant.All {
		if mutant.IsConstant(r.Name) {
			all = append(all, r.Name)
		}
	}
	assert.ElementsMatch(t, all, of)
}
