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
	"RuleRoute": protocol.RuleRoute, "RuleNearest": protocol.RuleNearest, "RuleLeaveUsed": protocol.RuleLeaveUsed,
	"RuleSetPatient": protocol.RuleSetPatient, "RuleSetRegain": protocol.RuleSetRegain, "RuleSetKin": protocol.RuleSetKin,
	"RuleSetSeen": protocol.RuleSetSeen, "RuleSetUnlisted": protocol.RuleSetUnlisted, "RuleSetFollow": protocol.RuleSetFollow,
	"RuleSetAstray": protocol.RuleSetAstray, "RuleSetHome": protocol.RuleSetHome, "RuleSetAlone": protocol.RuleSetAlone, "RuleSetRoom": protocol.RuleSetRoom, "RuleSetHeard": protocol.RuleSetHeard,
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

// findings counts what a test finds.
type findings struct{ n int }

func (f *findings) Errorf(string, ...any) { f.n++ }

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
		{"an address keeps a vote that it has left", protocol.RuleRefused, changedPlaces},
		{"an incarnation that another address has left counts", protocol.RuleOriginal, leftBehind},
		{"and one that it has lost to another", protocol.RuleRefused, changedOwner},
		{"a reply that does not count moves the tickets", protocol.RuleJudged, otherIncarnationShowsATicket},
		{"an answer that serves for two requests serves for one", protocol.RuleLanded, mergedAnswer},
		{"a node is not asked again after a reconnect", protocol.RuleAskAgain, askedAgain},
		{"the head of a queue waits for another client's key", protocol.RuleForeign, foreignKey},
		{"a run begins without its claim", protocol.RuleOpenHeld, openWithoutAHold},
		{"the reply that shows an incarnation is judged by the bounds of the last one", protocol.RuleBegins, firstReply},
		{"a node that is not heard of is not asked for its time", protocol.RulePoll, polled},
		{"a client with another list waits without an error", protocol.RuleSetList, listsDiffer},
		{"one member says what a node was", protocol.RuleSetWord, wordOfMembers},
		{"a member counts that does not answer any more", protocol.RuleExchangeSilent, countsSilent},
		{"what is given up is over before the register was read", protocol.RuleExchangeRead, undoesWhatWasRead},
		{"one member gives a node its place back without the others", protocol.RuleSetRegain, wordOfOne},
		{"a node of another set is made a member of this one", protocol.RuleSetKin, anotherSetStays},
		{"each refusal breaks the connection to a node without a vote", protocol.RuleSetPatient, refusedWithoutAVote},
		{"another set is proposed than a node has accepted", protocol.RuleSetAccepted, acceptedIsProposed},
		{"a node of another set says what counts", protocol.RuleSetFollow, followsAnotherSet},
		{"an empty server of a newer list is taken for a member", protocol.RuleSetSeen, movesToAnEmptyServer},
		{"so is a copy of a member that the list names where it was", protocol.RuleSetUnlisted, movesToACopy},
		{"a client counts members without a number", protocol.RuleSetRoom, outlivesItsNumbers},
		{"a copy of a member's data is used at an address that is no member's", protocol.RuleSetCopy, copyOfAMember},
		{"two members have one number", protocol.RuleSetNumber, numbersOfSwapped},
		{"a copy of a member's data is used at another member's address", protocol.RuleSetAstray, copyAtAnotherAddress},
		{"a vote of one member counts as another's", protocol.RuleSetOther, anotherMember},
		{"a view of before counts once its node is known", protocol.RuleSetHeard, heardAsAMember},
		{"what one member says of a record counts as another's", protocol.RuleSetAnswer, asOf},
		{"a copy of a member's data is used at an address that was left", protocol.RuleSetAstray, copyAtALeftAddress},
		{"a copy of a member's data is used at the address of a member that has entered since", protocol.RuleSetAstray, oldCopyAtAMember},
		{"so is one at the address of a member that has entered and left", protocol.RuleSetAstray, oldCopyOfBefore},
		{"and at the last of many addresses that were left", protocol.RuleSetAstray, oldCopyAfterMany},
		{"an emptied server becomes the member that was seen at its address", protocol.RuleSetAstray, emptiedAfterASwap},
		{"a member is not asked at its own address while another one is stopped", protocol.RuleSetHome, stoppedAfterASwap},
		{"a member is refused at its own address while another one is down", protocol.RuleSetHome, downAfterASwap},
		{"a member is not asked at its own address where no number has it", protocol.RuleSetHome, metElsewhereOnly},
		{"a client that reaches no member asks no node that had left", protocol.RuleSetAlone, sleptThroughExchanges},
		{"a server that has left becomes the member at whose address it is", protocol.RuleSetAstray, retiredElsewhere},
		{"an empty server becomes the member that was seen at the address of another one", protocol.RuleSetAstray, entersWhereAnotherWas},
		{"claims do not learn what a number stands for", protocol.RuleSetTell, staleGroup},
		{"what members said before gives a node its place back", protocol.RuleSetSince, wordOfBefore},
		{"so does what they said in another life of its data", protocol.RuleSetLife, wordForAnotherLife},
		{"a majority is seen to serve one by one", protocol.RuleExchangeStays, staysMoved},
		{"a majority counts that has its move in memory only", protocol.RuleExchangeSaved, staysSaved},
		{"claims do not learn what a number stood for before the first exchange", protocol.RuleSetTell, seenElsewhere},
		{"an operator's call records a set that is in use", protocol.RuleLeaveUsed, leavesUsed},
		{"an operator's call ends the guard time of a node that has forgotten a lease", protocol.RuleKeepGuard, keepsGuards},
		{"a vote of a server without an identity counts as a member's", protocol.RuleSetBlank, blankServer},
		{"a node is spared of both sets together", protocol.RuleSpareEach, sparesOfEachSet},
		{"a recording that is superseded goes on", protocol.RuleSetPromised, supersededGivesUp},
		{"in some history two members have one number", protocol.RuleSetNumber, manyHistories},
		{"in some history a client stays with a server that changed its address", protocol.RuleSetAstray, manyHistories},
		{"in some history claims do not learn what a number stands for", protocol.RuleSetTell, manyHistories},
		{"with two clients a copy votes in some history", protocol.RuleSetAstray, rivalMany},
		{"with two clients a member is not used in some history", protocol.RuleSetAlone, rivalMany},
		{"in some history a server becomes a member that runs elsewhere", protocol.RuleSetWord, laterHistories},
	} {
		var f findings
		m.test(&f, protocol.Without(m.rule))
		assert.NotZero(t, f.n, m.name)
	}
}

// laterHistories begins near one that finds the rule missing: few do. A change
// of the generator moves it, and then more of them are to be played once.
func laterHistories(t assert.TestingT, rules protocol.Rules) { histories(t, rules, 29000, 500) }

// manyHistories plays as many histories as a run of the tests does.
func manyHistories(t assert.TestingT, rules protocol.Rules) { histories(t, rules, 1, 2000) }

// rivalMany plays as many histories with two clients as a run of the tests
// does.
func rivalMany(t assert.TestingT, rules protocol.Rules) { rivalHistories(t, rules, 1, 2000) }
