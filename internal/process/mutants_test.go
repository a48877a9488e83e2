//go:build mutants

package process_test

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
		{"a reply that does not count moves the tickets", protocol.RuleJudged, otherIncarnationShowsATicket},
		{"an answer that serves for two requests serves for one", protocol.RuleLanded, mergedAnswer},
		{"a node is not asked again after a reconnect", protocol.RuleAskAgain, askedAgain},
		{"the head of a queue waits for another client's key", protocol.RuleForeign, foreignKey},
		{"a run begins without its claim", protocol.RuleOpenHeld, openWithoutAHold},
		{"the reply that shows an incarnation is judged by the bounds of the last one", protocol.RuleBegins, firstReply},
		{"a node that is not heard of is not asked for its time", protocol.RulePoll, polled},
		{"a vote of one member counts as another's", protocol.RuleSetNumber, numberOfAnother},
		{"so does what one said of a record", protocol.RuleSetNumber, recordOfAnother},
		{"a hold outlives what the guard time covers", protocol.RuleSetTTL, shorterGuard},
	} {
		var f findings.Findings
		m.test(&f, protocol.Without(m.rule))
		assert.NotZero(t, f.N, m.name)
	}
}
