//go:build mutants

package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
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
		{"a push before the incarnation is known is lost", protocol.RuleMissed, earlyPush},
		{"a reply that does not count moves the tickets", protocol.RuleJudged, otherIncarnationShowsATicket},
		{"an answer that serves for two requests serves for one", protocol.RuleLanded, mergedAnswer},
		{"a node is not asked again after a reconnect", protocol.RuleAskAgain, askedAgain},
		{"the head of a queue waits for another client's key", protocol.RuleForeign, foreignKey},
		{"a run begins without its claim", protocol.RuleOpenHeld, openWithoutAHold},
		{"the reply that shows an incarnation is judged by the bounds of the last one", protocol.RuleBegins, firstReply},
		{"a node that is not heard of is not asked for its time", protocol.RulePoll, polled},
		{"two lists with a common node are recorded", protocol.RuleSetAll, allRecordIt},
		{"what is accepted of a list that cannot be recorded keeps a node from its place", protocol.RuleSetVoid, acceptanceIsVoid},
		{"and from a recording", protocol.RuleSetVoid, voidIsOver},
		{"one node of a list says which set counts", protocol.RuleSetFound, findsByQ},
		{"one member says which set follows", protocol.RuleSetFollow, oneNodeLeads},
		{"registers of different versions say what follows", protocol.RuleSetVersion, versionsDiffer},
		{"a copy of a member's data has a vote", protocol.RuleSetBind, bindsByIdentity},
		{"a client without a quorum does not ask its list", protocol.RuleSetAlone, asksItsList},
		{"a vote of one member counts as another's", protocol.RuleSetNumber, numberOfAnother},
		{"so does what one said of a record", protocol.RuleSetNumber, recordOfAnother},
		{"a hold outlives what the guard time covers", protocol.RuleSetTTL, shorterGuard},
		{"one member says what a node was", protocol.RuleSetWord, wordOfMembers},
		{"a member counts that does not answer any more", protocol.RuleExchangeSilent, countsSilent},
		{"what is given up is over before the register was read", protocol.RuleExchangeRead, undoesWhatWasRead},
		{"another set is proposed than a node has accepted", protocol.RuleSetAccepted, acceptedIsProposed},
		{"what members said before gives a node its place back", protocol.RuleSetSince, wordOfBefore},
		{"so does what they said in another life of its data", protocol.RuleSetLife, wordForAnotherLife},
		{"a majority is seen to serve one by one", protocol.RuleExchangeStays, staysMoved},
		{"a majority counts that has its move in memory only", protocol.RuleExchangeSaved, staysSaved},
		{"a node is spared of both sets together", protocol.RuleSpareEach, sparesOfEachSet},
		{"a recording that is superseded goes on", protocol.RuleSetPromised, supersededGivesUp},
	} {
		var f findings
		m.test(&f, protocol.Without(m.rule))
		assert.NotZero(t, f.n, m.name)
	}
}

// Each constant of an exchange has a test that finds half of it and twice it.
func TestMutantsOfConstants(t *testing.T) {
	t.Parallel()
	for _, c := range constants {
		for name, rules := range map[string]protocol.Rules{"half": protocol.Halved(c.of), "twice": protocol.Doubled(c.of)} {
			var f findings
			c.test(&f, rules)
			assert.NotZero(t, f.n, "%s of constant %d", name, c.of)
		}
	}
	assert.Len(t, constants, int(protocol.Constants))
}
