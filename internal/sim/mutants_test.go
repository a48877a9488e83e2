//go:build mutants

package sim

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/testkit/mutant"
)

// row is the protocol with something left out, and what that leads to.
type row struct {
	name   string
	change mutation
	aim    generator
	within int    // so many seeds at most
	kinds  string // of violation
}

func without(rules ...string) mutation { return mutation{rules: rules} }

func nodesWithout(r model.Rules, rules ...string) mutation {
	return mutation{rules: rules, setting: func(s *course.Setting) { s.Off = r }}
}

// lateRules count less of what a node has that is not caught up. They also
// cover most of what goes wrong without some rules of nodes.
var lateRules = []string{"RuleLateTake", "RuleLateRead"}

// mutants are what generators find: the rows of protocol.md's table first, and
// then the rules that it does not name. A rule without a row here has a trace
// (TestTracesFindMutants).
var mutants = []row{
	{"validity is any q acknowledgements", without("RuleRecheck"), restart, 100, "capacity"},
	{"an unsettled attempt goes on", without("RuleAbandon"), restart, 100, "stuck"},
	{"guard below 2 ttl + 2 skew", mutation{setting: func(s *course.Setting) {
		s.Skew, s.Offsets = 3*s.TTL, true
		s.Guard = s.TTL + s.Skew/2
	}}, calm, 100, "late lost stuck"},
	{"guard below ttl", mutation{setting: func(s *course.Setting) { s.Guard = s.TTL / 2 }}, restart,
		100, "capacity"},
	{"no guard", nodesWithout(model.Guard), restart, 100, "capacity"},
	{"acknowledgements at any ticket", without("RuleExact"), crossing, 100, "token capacity"},
	{"views beyond their lease", without("RuleLease"), restart, 100, "capacity"},
	{"views of another incarnation", without("RuleIncarnation"), reborn, 100, "capacity"},
	// Where memory is lost a claim is stored twice, so either rule keeps these
	// out.
	{"pushes of another incarnation", without("RulePushView", "RulePushOnce", "RuleOwnIncarnation"), reborn,
		100, "capacity"},
	{"votes alone", without("RuleCounting"), calm, 300, "capacity order"},
	{"votes alone, seen by the order", without("RuleCounting"), storm, 3000, "capacity order"},
	{"no equality refusal", nodesWithout(model.Equality), crossing, 100, "token late stuck"},
	{"settle inserts below F", nodesWithout(model.InsertAboveFence), restart, 100, "token capacity"},
	{"drift ignored", without("RuleDrift"), cutoff, 100, "capacity"},
	{"no residues", nodesWithout(model.Residue), crossing, 100, "rounds"},

	{"F falls with the claims", nodesWithout(model.MonotoneFence), crossing, 100, "token"},
	{"lost is not final", without("RuleFinal"), cutoff, 100, "final"},
	{"leave only where held", without("RuleLeaveAll"), leaveAtOnce, 100, "orphan late"},
	{"leave overtakes its join", mutation{setting: func(s *course.Setting) { s.Overtake = true }},
		leaveAtOnce, 100, "orphan late"},
	{"an early push is dropped", without("RuleStash"), crossing, 100, "late"},
	{"a deferred node stays out", without("RuleRest"), calm, 100, "late stuck"},
	{"a try gives up though a node has voted for it", without("RuleStay"), rush, 100, "free"},
	{"like residues do not spread out", without("RuleSpread"), crossing, 100, "rounds lost"},
	{"T is not raised", without("RuleRaise"), settledNodeGoes, 1000, "stuck"},
	{"T is not raised while a minority fails", without("RuleRaise"), limping, 100, "late"},
	{"no waiter asks when a lease ends", without("RuleHint"), killed, 100, "lost"},
	{"a join instead of a settle", without("RuleSettleMissing"), rolling, 100, "lost"},
	{"a claim behind many waiters gets no hint", nodesWithout(model.FarHint), killed, 100, "late lost"},
	{"no claim has dead claims dropped", without("RuleInsist"), killed, 100, "late lost"},
	{"lists only when they are needed", without("RuleLists"), unlike, 100, "lost"},
	{"a lease ends with its node's memory", without("RuleOutlast"), unlike, 100, "lost"},
	{"a node that lost its data attests", without("RuleAttest"), bareMajority, 100, "record"},
	{"a node is repaired by fewer than all that may know",
		without("RuleEveryList"), bareMajority, 100, "record"},
	{"a minority's record is spread against a later run", without("RuleLater"), belated, 100, "record"},
	{"a minority's record is returned", without("RuleRepair"), belated, 100, "record"},
	{"a minority's record is not adopted", without("RuleAdopt"), runFindsMinority, 2000, "record"},
	{"a node is marked though it lacks a name", without("RuleRepairEvery"), rolling, 100, "record"},
	{"no reader decides", without("RuleRepairDecide"), rolling, 100, "stuck"},
	{"a repair that failed is not tried again", without("RuleRepairRetry"), rolling, 100, "stuck"},
	{"only readers repair nodes", without("RuleRepairMeet"), rolling, 100, "stuck"},
	{"clients repair a node at once", without("RuleRepairTurns"), rolling, 100, "busy"},
	{"all names are brought at once", without("RuleRepairBound"), rolling, 100, "busy"},
	{"a recovering node takes no claim back", nodesWithout(model.Reclaim), rolling, 100, "lost"},
	{"no promise", nodesWithout(model.Promise), belated, 100, "record"},
	{"a run begins where its claim is not", nodesWithout(model.Present, lateRules...), belated, 100, "record"},
	{"a promise outlives the memory", nodesWithout(model.PromiseIncarnation, lateRules...), belated, 100, "record"},
	{"an acknowledgement counts without end", without("RuleFresh"), stretched, 500, "record"},
	{"a Resize takes permits away from holders", without("RuleKeep"), resized, 100, "lost"},
	{"a node that has forgotten a Resize votes", nodesWithout(model.ResizeKnown), shrunk, 100, "capacity"},
	{"another Redlock client's expiry is above the guard time",
		mutation{setting: func(s *course.Setting) { s.Expiry = 2 * s.Guard }}, bygone, 100, "capacity"},
	{"one node's word ends a hold", without("RuleEvict"), evictions, 100, "evicted"},
	{"joins go before renewals", without("RuleUrgent"), flood, 100, "lost"},
	{"a request that waits is sent as it was", without("RuleNewest"), flood, 100, "newest"},
	{"a claim's leave does not withdraw what waits", without("RuleWithdraw"),
		unplugged, 100, "orphan late newest"},
	{"what is unanswered is repeated", without("RuleMerge"), storm, 500, "busy"},
	{"an attempt is abandoned unsent", without("RulePostpone"), flood, 100, "unsent"},
	{"operations on records find room at every time", without("RuleRecordsWait"), manyNames, 100, "room"},
	{"a broken connection takes room", mutation{setting: func(s *course.Setting) { s.Hoard = true }},
		unplugged, 100, "stuck orphan late"},
	{"an incarnation that has ended counts again", without("RuleReturned"), swapped, 100, "capacity"},
	{"what a request leaves over is not gone on with", nodesWithout(model.Resume), killed, 100, "busy lost"},
	{"no client is asked for another request", nodesWithout(model.Ask), calm, 300, "late"},
	{"a client is asked for a request though nothing is left over",
		nodesWithout(model.Enough), calm, 100, "busy"},
	{"a fence is raised past the node's clock", nodesWithout(model.Top), wrongClock, 100, "token"},
	{"a ticket of long ago counts", without("RuleOld"), wrongClock, 100, "token"},
	{"a retention time below the guard time",
		mutation{setting: func(s *course.Setting) { s.Retention = s.Guard / 4 }}, wrongClock, 100, "token"},
	{"attempts move the tickets on", without("RuleBurst"), polling, 100, "late lost"},
	{"a record of the far future is returned", nodesWithout(model.FarFuture), forged, 100, "record stuck"},
	{"a node with a forged record attests", without("RuleForged"), forged, 100, "record"},
	{"a record of the near future is returned", nodesWithout(model.NearFuture),
		recordOfTheFuture, 100, "record stuck"},
	{"a run waits for nodes that do not vote for it", without("RuleHopeless"), recordOfTheFuture, 300, "stuck"},
	{"no client looks at the clock", without("RuleClock"), manyNames, 1000, "capacity"},
	{"a node is blamed by one client's word", without("RuleBlame"), storm, 100, "silenced"},
	{"a node in doubt votes", without("RuleDoubt"), doubt, 100, "capacity"},
	{"leases last though a clock stood still", without("RuleEarly"), manyNames, 1000, "capacity"},
	{"the bounds of a node's clock outlast its incarnation", without("RuleMet"), storm, 100, "silenced"},
	{"no margin for jumps that are not noticed",
		mutation{setting: func(s *course.Setting) { s.Scant = true }}, nudge, 100, "capacity"},
	{"no client looks at the uptime", mutation{setting: func(s *course.Setting) { s.Forgetful = true }}, restart,
		100, "capacity"},

	{"all names have one ticket clock",
		mutation{setting: func(s *course.Setting) { s.OneClock = true }}, manyNamesCalm, 100, "ahead"},
	{"the leaves of a Close go to a quorum only", without("RuleLeaveAll"), closing, 100, "orphan late closed"},
	{"a claim whose renewal has ended is handed over", without("RulePassUsable"), maxHolds,
		100, "unaware overlong late"},
	{"a hold is renewed past its bound", mutation{setting: func(s *course.Setting) { s.Unbound = true }},
		maxHolds, 100, "overlong stuck"},
	{"no guard, with several names", nodesWithout(model.Guard), manyNames, 1000, "capacity"},
	{"a node serves claims of another configuration", nodesWithout(model.SetRefuse), exchangeCalm,
		300, "capacity token record"},
	{"one node of a list says which set counts", without("RuleSetFound"), liar, 100, "set"},
	{"one member says what follows", without("RuleSetFollow"), liar, 100, "set"},
	{"a server counts at any member's address", without("RuleSetBind"), twofold, 100, "capacity token"},
	{"what was removed is stopped before clients have followed", without("RuleExchangeFollow"),
		stops, 100, "stuck lost place"},
	{"an idle client does not ask which set its nodes are of", without("RulePoll"), stops, 100, "stuck"},
	{"a client dials the first address of a member", without("RuleSetListed"), addresses, 100, "stuck"},
	{"a client without a quorum asks its members only", without("RuleSetAlone"), slept, 100, "stuck"},
	{"a hold goes on though the guard time gets too short for it", without("RuleSetTTL"),
		shorter, 100, "capacity token"},
	{"a blank server gets its place by the word of one member", without("RuleSetWord"),
		exchangeRegress, 100, "capacity token"},
	{"what follows is decided at the nodes of a later set",
		without("RuleSetSuccessor"), exchangeLate, 100, "set"},
	{"a majority of a list records it", without("RuleSetAll"), recordings, 100, "capacity token set"},
	{"a node accepts a set below its promise", nodesWithout(model.SetPromise), recordings, 500, "set"},

	{"a majority of the new set is enough while nodes are exchanged", without("RuleSetBoth"),
		exchangeFalls, 300, "capacity token"},
	{"the new set counts alone at once", without("RuleExchangeWait"), exchangeFalls, 300, "capacity token"},
	{"the new set counts alone after half the time", without("half.ConstExchangeWait"),
		exchangeFalls, 300, "capacity token"},
	{"a node moves to an earlier configuration", nodesWithout(model.SetHigher),
		exchangeAgain, 100, "capacity token"},
	{"a deadline that was kept stays though clocks have parted", without("RuleKeepEarly"),
		exchangeAsleep, 300, "capacity token"},
	{"an attempt of before the new set goes on", without("RuleNarrow"), exchangeFalls, 300, "token"},
	{"the new set counts before it is caught up", without("RuleExchangeCaughtUp"),
		exchangeRecords, 100, "record"},
	{"what followed before is brought to a node", without("RuleRepairSuccession"), exchangeCalm, 100, "stuck"},
	{"a node gets its place back by what members said before", without("RuleSetSince"),
		exchangeRegress, 100, "capacity token"},
	{"a member may come back with an older file", without("RuleExchangeSaved"),
		exchangeRegress, 100, "capacity token"},

	{"a reader joins a writer", without("RuleShare"), localCalm, 100, "capacity token"},
	{"the caller that came last is next", without("RuleFirst"), localCalm, 100, "order"},
	{"a claim is handed over for any time", without("RulePassTime"), localCalm, 100, "late"},
	{"a claim that is lost is handed over", without("RulePassUsable"), localStorm, 100, "unaware"},
	{"a hand-over keeps the token", without("RulePassToken"), localCalm, 100, "token"},
	{"a reader's place serves a writer", without("RulePlaceMode"), localCalm, 100, "capacity"},
	{"a place that no caller takes over stays", without("RulePlaceLeft"), localCalm, 100, "late stuck orphan"},
	{"no caller goes on where another has failed", without("RuleNext"), localCalm, 100, "late stuck"},
	{"a claim lingers though another process waits", without("RuleLinger"), localCalm, 100, "late"},
	{"a claim lingers without end", without("RuleLingerEnd"), localCalm, 100, "stuck"},
	{"a reader's claim lingers beside a writer's attempt", without("RuleLingerMode"),
		localCalm, 100, "late stuck orphan"},
	{"callers do not learn of a loss", without("RuleLostHolders"), localStorm, 100, "unaware"},
}

// TestMutants finds each mutant. With -rewrite it writes into
// docs/internals/simulation.md at which seed.
func TestMutants(t *testing.T) {
	seeds := map[string]uint64{} // by mutant: the first that finds it
	t.Cleanup(func() { tabulate(t, seeds) })
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			defer mutant.Off(m.change.rules...)()
			began := time.Now()
			for seed := range uint64(m.within) {
				v, _ := run(m.aim, seed, m.change.setting, nil)
				if v == nil {
					continue
				}
				if !slices.Contains(strings.Fields(m.kinds), v.Kind) {
					t.Fatalf("%s, seed %d: found %v, expected %s", m.aim.name, seed, v, m.kinds)
				}
				seeds[m.name] = seed + 1
				t.Logf("%s: seed %d of %d, %v: %v", m.aim.name, seed+1, m.within,
					time.Since(began).Round(time.Millisecond), v)
				return
			}
			t.Errorf("%s: not found with %d seeds, %v", m.aim.name, m.within,
				time.Since(began).Round(time.Millisecond))
		})
	}
}

const document = "../../docs/internals/simulation.md"

// tabulate compares the rows of the document with the mutants: each has one,
// with its rules, its aim and its bound. The seeds are written with -rewrite
// only: each change of the simulator moves some of them.
func tabulate(t *testing.T, seeds map[string]uint64) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, m := range mutants {
		at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "| "+m.name+" | ") })
		if at < 0 {
			t.Errorf("%s: no row for %q", document, m.name)
			continue
		}
		cells := strings.Split(lines[at], " | ")
		cells[1], cells[2] = m.leftOut(t), m.aim.name
		cells[3], _, _ = strings.Cut(cells[3], " ")
		if *rewrite && seeds[m.name] > 0 {
			cells[3] = fmt.Sprint(seeds[m.name])
		}
		cells[3] += fmt.Sprintf(" of %d", m.within)
		if row := strings.Join(cells, " | "); row != lines[at] && !*rewrite {
			t.Errorf("%s: %q is to be %q: run the test with -rewrite", document, lines[at], row)
		} else {
			lines[at] = row
		}
	}
	if *rewrite {
		if err := os.WriteFile(document, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// leftOut returns the names of the rules that the mutant lacks.
func (m row) leftOut(t *testing.T) string {
	lacks := m.nodeRules()
	var off []string
	for n, c := range mutations(t) {
		if of := (row{change: c}).nodeRules(); of != 0 && lacks&of == of || slices.Contains(m.change.rules, n) {
			off = append(off, n)
		}
	}
	return strings.Join(off, ", ")
}

// nodeRules are the rules that nodes lack.
func (m row) nodeRules() model.Rules {
	s := course.Setting{TTL: time.Second}
	if m.change.setting != nil {
		m.change.setting(&s)
	}
	return s.Off
}

// The same schedules show nothing while all rules are on. Most aims have
// several mutants, and are played once, with the most seeds that any of these
// has.
func TestAimsAreFair(t *testing.T) {
	seeds, aims := map[string]int{}, map[string]generator{}
	for _, m := range mutants {
		seeds[m.aim.name], aims[m.aim.name] = max(seeds[m.aim.name], m.within), m.aim
	}
	for name, a := range aims {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(seeds[name]) {
				if v, _ := run(a, seed, nil, nil); v != nil {
					t.Fatalf("%s, seed %d: %v", name, seed, v)
				}
			}
		})
	}
}
