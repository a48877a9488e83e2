//go:build mutants

package nodeset_test

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
		{"two lists with a common node are recorded", "RuleSetAll", allRecordIt},
		{"what is accepted of a list that cannot be recorded keeps a node from its place",
			"RuleSetVoid", acceptanceIsVoid},
		{"and from a recording", "RuleSetVoid", voidIsOver},
		{"one node of a list says which set counts", "RuleSetFound", findsByQ},
		{"one member says which set follows", "RuleSetFollow", oneNodeLeads},
		{"registers of different versions say what follows", "RuleSetVersion", versionsDiffer},
		{"a copy of a member's data has a vote", "RuleSetBind", bindsByIdentity},
		{"a client dials the first address of a member", "RuleSetListed", dialsItsOwn},
		{"a client without a quorum does not ask its list", "RuleSetAlone", asksItsList},
		{"a blank server at a wrong address makes a client forget its set", "RuleSetForget", leadsElsewhere},
		{"so does the first of three nodes", "RuleSetForget", forgetsDuringAnExtension},
		{"one member says what a node was", "RuleSetWord", wordOfMembers},
		{"another set is proposed than a node has accepted", "RuleSetAccepted", acceptedIsProposed},
		{"what members said before gives a node its place back", "RuleSetSince", wordOfBefore},
		{"so does what they said in another life of its data", "RuleSetLife", wordForAnotherLife},
		{"a recording that is superseded goes on", "RuleSetPromised", supersededGivesUp},
	} {
		var f findings.Findings
		restore := mutant.Off(m.rule)
		m.test(&f)
		restore()
		assert.NotZero(t, f.N, m.name)
	}
}
