//go:build mutants

package sim

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/play"
	"github.com/quorate/quorate/internal/testkit/mutant"
	"github.com/quorate/quorate/internal/trace"
)

var leaveOut = flag.String("without", "", "rules to leave out, such as RulePushOnce+node.Guard")

func init() {
	leavesOut = func(t *testing.T) mutation {
		if *leaveOut == "" {
			return mutation{}
		}
		return leavingOut(t, *leaveOut)
	}
}

// leavingOut returns what leaves out some rules, joined by +.
func leavingOut(t *testing.T, rules string) mutation {
	by := maps.Collect(mutations(t))
	maps.Copy(by, noRules)
	var all mutation
	var settings []func(*course.Setting)
	for r := range strings.SplitSeq(rules, "+") {
		c, known := by[r]
		if !known {
			t.Fatalf("there is no rule %s", r)
		}
		if all.rules = append(all.rules, c.rules...); c.setting != nil {
			settings = append(settings, c.setting)
		}
	}
	all.setting = func(s *course.Setting) {
		for _, f := range settings {
			f(s)
		}
	}
	return all
}

// traceFiles are of one machine. They show the rules that the simulator does
// not run: how long a call waits for a node, what a client makes of addresses
// that it learns, and of servers that no world of the simulator has.
const traceFiles = "../lease/testdata/traces/*.txt"

// Those tests show rules by calls of the pure packages, each with a mutant of
// its own.
var ruleTests = []string{"../lease/mutants_test.go", "../nodeset/mutants_test.go",
	"../change/mutants_test.go", "../repair/mutants_test.go", "../process/mutants_test.go",
	"../../once/mutants_test.go"}

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
			if s, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(s.Value, `"Rule`) {
				shown[strings.Trim(s.Value, `"`)] = true
			}
			return true
		})
	}
	for _, r := range mutant.All { // TestMutantsOfConstants halves each
		if mutant.IsConstant(r.Name) {
			shown["half."+r.Name] = true
		}
	}
	return shown
}

// noRules are the mutants that are no rules.
var noRules = map[string]mutation{
	"margin":   {setting: func(s *course.Setting) { s.Scant = true }},
	"uptime":   {setting: func(s *course.Setting) { s.Forgetful = true }},
	"overtake": {setting: func(s *course.Setting) { s.Overtake = true }},
	"hoard":    {setting: func(s *course.Setting) { s.Hoard = true }},
}

// nodeRules returns the names of a node's rules, in their order.
func nodeRules(t *testing.T) (names []string) {
	f, err := parser.ParseFile(token.NewFileSet(), "../model/rules.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			names = append(names, v.Names[0].Name)
		}
		return true
	})
	return names
}

// mutations returns what leaves out each rule, by its name.
func mutations(t *testing.T) iter.Seq2[string, mutation] {
	return func(yield func(string, mutation) bool) {
		for _, r := range mutant.All {
			if strings.HasPrefix(r.Name, "Rule") && !yield(r.Name, mutation{rules: []string{r.Name}}) {
				return
			}
		}
		for i, n := range nodeRules(t) {
			if !yield("node."+n, nodesWithout(model.Rules(1)<<i)) {
				return
			}
		}
		for _, r := range mutant.All {
			if n := "half." + r.Name; mutant.IsConstant(r.Name) && !yield(n, mutation{rules: []string{n}}) {
				return
			}
		}
	}
}

// Each trace that names a rule shows what goes wrong without it, and each rule
// has a trace, or an aim.
func TestTracesFindMutants(t *testing.T) {
	shown := map[string]bool{}
	for _, file := range traces(t) {
		blocks := readTrace(t, file)
		right := trace.Output(play.PlayTrace(blocks, nil))
		for _, c := range trace.Claims(blocks) {
			for r := range strings.SplitSeq(c.Rules, "+") {
				shown[r] = true
			}
			m := leavingOut(t, c.Rules)
			restore := mutant.Off(m.rules...)
			wrong := trace.Output(play.PlayTrace(blocks, m.setting))
			restore()
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
	for n := range mutations(t) {
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
	changed := map[string]int{}
	for n, c := range mutations(t) {
		restore := mutant.Off(c.rules...)
		var files []string
		for _, file := range traces(t) {
			blocks := readTrace(t, file)
			if !slices.Equal(trace.Output(blocks), trace.Output(play.PlayTrace(blocks, c.setting))) {
				files = append(files, strings.TrimSuffix(filepath.Base(file), ".txt"))
				changed[file]++
			}
		}
		restore()
		t.Logf("%-20s %v", n, files)
	}
	for _, file := range traces(t) {
		if changed[file] == 0 {
			t.Logf("no mutant changes %s", file)
		}
	}
}
