//go:build mutants

package lease_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/testkit/findings"
	"github.com/quorate/quorate/internal/trace"
)

// traced are the rules that the traces of this package show.
var traced = map[string]protocol.Rule{
	"RuleRoute": protocol.RuleRoute, "RuleNearest": protocol.RuleNearest,
}

// Each trace shows what goes wrong without the rule that it names, and each
// rule of the table has one.
func TestTracesFindMutants(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for file, blocks := range traces(t) {
		right := trace.Output(playTrace(t, file, blocks, protocol.Rules{}))
		for _, c := range trace.Claims(blocks) {
			rule, known := traced[c.Rules]
			assert.True(t, known, "%s: %s", file, c.Rules)
			shown[c.Rules] = true
			assert.Empty(t, c.Shows(right, trace.Output(playTrace(t, file, blocks, protocol.Without(rule)))), file)
		}
	}
	for name := range traced {
		assert.True(t, shown[name], "no trace shows %s", name)
	}
}

// The rules that the simulator does not run each have a test that finds that it
// is missing.
func TestMutants(t *testing.T) {
	for _, m := range []struct {
		name string
		rule protocol.Rule
		test func(assert.TestingT, protocol.Rules)
	}{
		{"the shortest answer counts for good", protocol.RuleRoute, route},
		{"a call waits for the furthest node", protocol.RuleNearest, nearest},
		{"a name is free though nodes are silent", protocol.RuleUnknown, whoHolds},
	} {
		var f findings.Findings
		m.test(&f, protocol.Without(m.rule))
		assert.NotZero(t, f.N, m.name)
	}
}
