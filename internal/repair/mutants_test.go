//go:build mutants

package repair_test

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
		{"a node is spared that is not caught up", protocol.RuleSpareCaughtUp, sparesOfEachSet},
	} {
		var f findings.Findings
		m.test(&f, protocol.Without(m.rule))
		assert.NotZero(t, f.N, m.name)
	}
}
