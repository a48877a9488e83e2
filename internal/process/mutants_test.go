//go:build mutants

package process_test

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
		{"a reply that does not count moves the tickets", "RuleJudged", otherIncarnationShowsATicket},
		{"an answer that serves for two requests serves for one", "RuleLanded", mergedAnswer},
		{"a node is not asked again after a reconnect", "RuleAskAgain", askedAgain},
		{"the head of a queue waits for another client's key", "RuleForeign", foreignKey},
		{"a run begins without its claim", "RuleOpenHeld", openWithoutAHold},
		{"the reply that shows an incarnation is judged by the bounds of the last one", "RuleBegins", firstReply},
		{"a node that is not heard of is not asked for its time", "RulePoll", polled},
		{"a vote of one member counts as another's", "RuleSetNumber", numberOfAnother},
		{"so does what one said of a record", "RuleSetNumber", recordOfAnother},
		{"a hold outlives what the guard time covers", "RuleSetTTL", shorterGuard},
	} {
		var f findings.Findings
		restore := mutant.Off(m.rule)
		m.test(&f)
		restore()
		assert.NotZero(t, f.N, m.name)
	}
}
