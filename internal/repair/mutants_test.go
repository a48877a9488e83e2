//go:build mutants

package repair_test

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
		{"a node is spared that is not caught up", "RuleSpareCaughtUp", sparesOfEachSet},
		{"a node is marked by names of an earlier configuration", "RuleRepairHome", namesListedBeforeTheNodeCounts},
	} {
		var f findings.Findings
		restore := mutant.Off(m.rule)
		m.test(&f)
		restore()
		assert.NotZero(t, f.N, m.name)
	}
}
