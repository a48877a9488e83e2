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
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/play"
	"github.com/quorate/quorate/internal/trace"
)

var leaveOut = flag.String("without", "", "rules to leave out, such as RulePushOnce+node.Guard")

func init() {
	leavesOut = func(t *testing.T) func(*course.Setting) {
		if *leaveOut == "" {
			return nil
		}
		return leavingOut(t, *leaveOut)
	}
}

// leavingOut returns what leaves out some rules, joined by +.
func leavingOut(t *testing.T, rules string) func(*course.Setting) {
	_, by := mutations(t)
	var off []func(*course.Setting)
	for r := range strings.SplitSeq(rules, "+") {
		if by[r] == nil {
			t.Fatalf("there is no rule %s", r)
		}
		off = append(off, by[r])
	}
	return func(s *course.Setting) {
		for _, f := range off {
			f(s)
		}
	}
}

// traceFiles are of one machine. They show the rules that the simulator does
// not run: how long a call waits for a node, what a client makes of addresses
// that it learns, and of servers that no world of the simulator has.
const traceFiles = "../lease/testdata/traces/*.txt"

// Those tests show rules by calls of the pure packages, each with a mutant of
// its own.
var ruleTests = []string{"../lease/mutants_test.go", "../nodeset/mutants_test.go", "../change/mutants_test.go", "../repair/mutants_test.go", "../process/mutants_test.go"}

// shownElsewhere returns the rules of which these show what goes wrong.
func shownElsewhere(t *testing.T) map[string]bool {
	shown := map[string]bool{}
	files, err := filepath.Glob(traceFiles)
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	for _, file := range files {
		for _, c := range trace.Claims(readTrace(t, file)) {
			shown[c.Rules] = true
		}
	}
	for _, file := range ruleTests {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "Rule") {
				shown[s.Sel.Name] = true
			}
			return true
		})
	}
	for _, n := range ruleNames(t, "../protocol/constants.go", "ConstExchangeWait") { // TestMutantsOfConstants halves each
		shown["half."+n] = true
	}
	return shown
}

// switches are the mutants that are no rules.
var switches = map[string]func(*course.Setting){
	"margin":   func(s *course.Setting) { s.Scant = true },
	"uptime":   func(s *course.Setting) { s.Forgetful = true },
	"overtake": func(s *course.Setting) { s.Overtake = true },
	"hoard":    func(s *course.Setting) { s.Hoard = true },
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
func mutations(t *testing.T) (names []string, by map[string]func(*course.Setting)) {
	by = map[string]func(*course.Setting){}
	for i, n := range ruleNames(t, "../protocol/rules.go", "RuleRecheck") {
		names, by[n] = append(names, n), func(s *course.Setting) { s.Rules = s.Rules.And(protocol.Without(protocol.Rule(i + 1))) }
	}
	for i, n := range ruleNames(t, "../protocol/rules_local.go", "RuleShare") {
		rule := protocol.RuleShare + protocol.Rule(i)
		names, by[n] = append(names, n), func(s *course.Setting) { s.Rules = s.Rules.And(protocol.Without(rule)) }
	}
	for i, n := range ruleNames(t, "../protocol/rules_repair.go", "RuleRepairMeet") {
		rule := protocol.RuleRepairMeet + protocol.Rule(i)
		names, by[n] = append(names, n), func(s *course.Setting) { s.Rules = s.Rules.And(protocol.Without(rule)) }
	}
	for i, n := range ruleNames(t, "../protocol/rules_members.go", "RuleSetAll") {
		rule := protocol.RuleSetAll + protocol.Rule(i)
		names, by[n] = append(names, n), func(s *course.Setting) { s.Rules = s.Rules.And(protocol.Without(rule)) }
	}
	for i, n := range ruleNames(t, "../model/rules.go", "Guard") {
		n = "node." + n
		names, by[n] = append(names, n), func(s *course.Setting) { s.Off |= model.Rules(1) << i }
	}
	for i, n := range ruleNames(t, "../protocol/constants.go", "ConstExchangeWait") {
		if c := protocol.Constant(i); c < protocol.Constants {
			names, by["half."+n] = append(names, "half."+n), func(s *course.Setting) { s.Rules = s.Rules.And(protocol.Halved(c)) }
		}
	}
	for n, f := range switches {
		by[n] = f
	}
	return names, by
}

// Each trace that names a rule shows what goes wrong without it, and each rule
// has a trace, or an aim.
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
		right := trace.Output(play.PlayTrace(blocks, nil))
		for _, c := range trace.Claims(blocks) {
			for r := range strings.SplitSeq(c.Rules, "+") {
				shown[r] = true
			}
			wrong := trace.Output(play.PlayTrace(blocks, leavingOut(t, c.Rules)))
			if why := c.Shows(right, wrong); why != "" {
				t.Errorf("%s: %s", file, why)
			}
		}
	}
	elsewhere := shownElsewhere(t)
	for _, m := range mutants {
		for n := range strings.SplitSeq(m.leftOut(t), ", ") {
			shown[n] = true
		}
	}
	for _, n := range names {
		if !shown[n] && !elsewhere[n] {
			t.Errorf("rule %s: no trace and no aim shows it", n)
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
			if !slices.Equal(trace.Output(blocks), trace.Output(play.PlayTrace(blocks, by[n]))) {
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
