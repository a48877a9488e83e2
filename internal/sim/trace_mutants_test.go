//go:build mutants

package sim

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
)

var leaveOut = flag.String("without", "", "rules to leave out, such as RulePushOnce+node.Guard")

func init() {
	leavesOut = func(t *testing.T) func(*setting) {
		if *leaveOut == "" {
			return nil
		}
		return leavingOut(t, *leaveOut)
	}
}

// leavingOut returns what leaves out some rules, joined by +.
func leavingOut(t *testing.T, rules string) func(*setting) {
	_, by := mutations(t)
	var off []func(*setting)
	for r := range strings.SplitSeq(rules, "+") {
		if by[r] == nil {
			t.Fatalf("there is no rule %s", r)
		}
		off = append(off, by[r])
	}
	return func(s *setting) {
		for _, f := range off {
			f(s)
		}
	}
}

// untraced says of each rule that no trace is about why. internal/protocol has
// a mutant of each.
var untraced = map[string]string{
	"RuleRoute":       notRun + ": how long a call waits for a node",
	"RuleNearest":     notRun + ": how long a call waits for a node",
	"RuleLeaveUsed":   notRun + ": an operator's call of the simulator is for a set that is recorded",
	"RuleSetPatient":  notRun + ": a connection to a node that has no vote is no connection there",
	"RuleSetRegain":   "two recordings must cross, which a trace cannot time",
	"RuleSetKin":      notRun + ": nodes of two recorded sets at one address",
	"RuleSetSeen":     notRun + ": a client of the simulator learns no addresses",
	"RuleSetUnlisted": notRun + ": as above",
	"RuleSetFollow":   notRun + ": nodes of two recorded sets at one address",
	"RuleSetHome":     notRun + ": a client that reaches no server at the address where it saw a member",
	"RuleSetRoom":     notRun + ": a client that outlives 29 nodes",
	"RuleSetHeard":    "the server at an address must change between two connections while a lease lasts, and while the set becomes known",
}

const notRun = "the simulator does not run the decision"

// switches are the mutants that are no rules.
var switches = map[string]func(*setting){
	"margin":   func(s *setting) { s.scant = true },
	"uptime":   func(s *setting) { s.forgetful = true },
	"overtake": func(s *setting) { s.overtake = true },
	"hoard":    func(s *setting) { s.hoard = true },
}

// ruleNames returns the names of the constants that a const block of a file
// declares, beginning with first, without those that are not exported.
func ruleNames(t *testing.T, file, first string) (names []string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
			names = nil
			for _, s := range g.Specs {
				for _, n := range s.(*ast.ValueSpec).Names {
					if n.IsExported() {
						names = append(names, n.Name)
					}
				}
			}
			if names[0] == first {
				return names
			}
		}
	}
	t.Fatalf("%s: no constants that begin with %s", file, first)
	return nil
}

// rulesIn returns the names of the rules that some files declare.
func rulesIn(t *testing.T, pattern string) (names []string) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files: %v", pattern, err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Rule") {
				names = append(names, v.Names[0].Name)
			}
			return true
		})
	}
	return names
}

// mutations returns what leaves out each rule, by its name.
func mutations(t *testing.T) (names []string, by map[string]func(*setting)) {
	by = map[string]func(*setting){}
	for i, n := range ruleNames(t, "../protocol/rules.go", "RuleRecheck") {
		names, by[n] = append(names, n), func(s *setting) { s.rules = s.rules.And(protocol.Without(protocol.Rule(i + 1))) }
	}
	for i, n := range ruleNames(t, "../protocol/rules_local.go", "RuleShare") {
		rule := protocol.RuleShare + protocol.Rule(i)
		names, by[n] = append(names, n), func(s *setting) { s.rules = s.rules.And(protocol.Without(rule)) }
	}
	for i, n := range ruleNames(t, "../protocol/rules_repair.go", "RuleRepairMeet") {
		rule := protocol.RuleRepairMeet + protocol.Rule(i)
		names, by[n] = append(names, n), func(s *setting) { s.rules = s.rules.And(protocol.Without(rule)) }
	}
	for i, n := range ruleNames(t, "../protocol/rules_members.go", "RuleSetAll") {
		rule := protocol.RuleSetAll + protocol.Rule(i)
		names, by[n] = append(names, n), func(s *setting) { s.rules = s.rules.And(protocol.Without(rule)) }
	}
	for i, n := range ruleNames(t, "../model/rules.go", "Guard") {
		n = "node." + n
		names, by[n] = append(names, n), func(s *setting) { s.off |= model.Rules(1) << i }
	}
	for n, f := range switches {
		by[n] = f
	}
	return names, by
}

// claimed returns the rules that a trace says it shows, each with what goes
// wrong without it.
func claimed(blocks []block) (all [][2]string) {
	for _, b := range blocks {
		for _, l := range b.before {
			if rest, ok := strings.CutPrefix(l, "# without "); ok {
				rules, wrong, _ := strings.Cut(rest, ": ")
				all = append(all, [2]string{rules, wrong})
			}
		}
	}
	return all
}

// Each trace that names a rule shows what goes wrong without it, and each rule
// has a trace.
func TestTracesFindMutants(t *testing.T) {
	names, by := mutations(t)
	for _, n := range rulesIn(t, "../protocol/rules*.go") {
		if by[n] == nil {
			t.Errorf("rule %s is in no file that mutations reads", n)
		}
	}
	shown := map[string]bool{}
	for _, file := range traces(t) {
		blocks := readTrace(t, file)
		right := outputOf(playTrace(blocks, nil))
		for _, c := range claimed(blocks) {
			for r := range strings.SplitSeq(c[0], "+") {
				shown[r] = true
			}
			wrong := outputOf(playTrace(blocks, leavingOut(t, c[0])))
			switch {
			case slices.Equal(right, wrong):
				t.Errorf("%s: nothing changes without %s", file, c[0])
			case !slices.ContainsFunc(wrong, func(l string) bool { return strings.Contains(l, c[1]) }):
				t.Errorf("%s: without %s nothing contains %q:\n%s", file, c[0], c[1], join(wrong))
			case slices.ContainsFunc(right, func(l string) bool { return strings.Contains(l, c[1]) }):
				t.Errorf("%s: %q also with %s", file, c[1], c[0])
			}
		}
	}
	for _, n := range names {
		if known := untraced[n] != ""; shown[n] == known {
			t.Errorf("rule %s: a trace shows it: %t, listed as untraced: %t", n, shown[n], known)
		}
	}
}

// TestTracesUnderEachMutant reports which traces each mutant changes. It checks
// nothing.
func TestTracesUnderEachMutant(t *testing.T) {
	if !testing.Verbose() {
		t.Skip("a report: see it with -v")
	}
	names, by := mutations(t)
	changed := map[string]int{}
	for _, n := range names {
		var files []string
		for _, file := range traces(t) {
			blocks := readTrace(t, file)
			if !slices.Equal(outputOf(blocks), outputOf(playTrace(blocks, by[n]))) {
				files = append(files, strings.TrimSuffix(filepath.Base(file), ".txt"))
				changed[file]++
			}
		}
		t.Logf("%-20s %v", n, files)
	}
	for _, file := range traces(t) {
		if changed[file] == 0 {
			t.Logf("no mutant changes %s", file)
		}
	}
}
