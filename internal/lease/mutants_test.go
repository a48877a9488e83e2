//go:build mutants

package lease_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/testkit/findings"
	"github.com/quorate/quorate/internal/testkit/mutant"
	"github.com/quorate/quorate/internal/trace"
)

// traced are the rules that the traces of this package show.
var traced = []string{"RuleRoute", "RuleNearest"}

// Each trace shows what goes wrong without the rule that it names, and each
// rule of the table has one.
func TestTracesFindMutants(t *testing.T) {
	shown := map[string]bool{}
	for file, blocks := range traces(t) {
		right := trace.Output(playTrace(t, file, blocks))
		for _, c := range trace.Claims(blocks) {
			assert.Contains(t, traced, c.Rules, file)
			shown[c.Rules] = true
			restore := mutant.Off(c.Rules)
			wrong := trace.Output(playTrace(t, file, blocks))
			restore()
			assert.Empty(t, c.Shows(right, wrong), file)
		}
	}
	for _, name := range traced {
		assert.True(t, shown[name], "no trace shows %s", name)
	}
}

// The rules that the simulator does not run each have a test that finds that it
// is missing.
func TestMutants(t *testing.T) {
	for _, m := range []struct {
		name string
		rule string
		test func(assert.TestingT)
	}{
		{"the shortest answer counts for good", "RuleRoute", route},
		{"a call waits for the furthest node", "RuleNearest", nearest},
		{"a name is free though nodes are silent", "RuleUnknown", whoHolds},
		{"a bare majority is not told of", "RuleBare", bare},
		{"a put counts that a node took after it had forgotten a later run", "RuleLateTake", lateTake},
		{"a value counts at a node that took it after a later run had looked", "RuleLateRead", lateRead},
		{"an open counts what a node said before a majority had promised", "RuleAfter", openAfter},
	} {
		var f findings.Findings
		restore := mutant.Off(m.rule)
		m.test(&f)
		restore()
		assert.NotZero(t, f.N, m.name)
	}
}
