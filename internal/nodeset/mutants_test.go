//go:build mutants

package nodeset_test

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
		{"two lists with a common node are recorded", protocol.RuleSetAll, allRecordIt},
		{"what is accepted of a list that cannot be recorded keeps a node from its place", protocol.RuleSetVoid, acceptanceIsVoid},
		{"and from a recording", protocol.RuleSetVoid, voidIsOver},
		{"one node of a list says which set counts", protocol.RuleSetFound, findsByQ},
		{"one member says which set follows", protocol.RuleSetFollow, oneNodeLeads},
		{"registers of different versions say what follows", protocol.RuleSetVersion, versionsDiffer},
		{"a copy of a member's data has a vote", protocol.RuleSetBind, bindsByIdentity},
		{"a client dials the first address of a member", protocol.RuleSetListed, dialsItsOwn},
		{"a client without a quorum does not ask its list", protocol.RuleSetAlone, asksItsList},
		{"one member says what a node was", protocol.RuleSetWord, wordOfMembers},
		{"another set is proposed than a node has accepted", protocol.RuleSetAccepted, acceptedIsProposed},
		{"what members said before gives a node its place back", protocol.RuleSetSince, wordOfBefore},
		{"so does what they said in another life of its data", protocol.RuleSetLife, wordForAnotherLife},
		{"a recording that is superseded goes on", protocol.RuleSetPromised, supersededGivesUp},
	} {
		var f findings.Findings
		m.test(&f, protocol.Without(m.rule))
		assert.NotZero(t, f.N, m.name)
	}
}
