package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/mutant"
)

const ruleTable = "## Rules, proofs, mutants and traces"

var (
	ruleRow  = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]*) \| ([^|]*) \|$`)
	leftOut  = regexp.MustCompile(`(?m)^# without ([^:]+):`)
	ruleName = regexp.MustCompile(`(?:Rule|node\.)\w+`)
)

// Invariant: each rule that a mutant leaves out stands in one row of the
// protocol's table, with its proof and all of its traces. Without the test the
// table ages with each rule and trace.
func TestRuleTable(t *testing.T) {
	_, table, _ := strings.Cut(documents(t)["docs/internals/protocol.md"], ruleTable)
	table, _, _ = strings.Cut(table, "\n## ")
	rows := map[string]string{} // of each rule
	for _, row := range ruleRow.FindAllStringSubmatch(table, -1) {
		for _, rule := range ruleName.FindAllString(row[3], -1) {
			assert.NotContains(t, rows, rule, "a second row")
			rows[rule] = row[4]
		}
	}
	known := rulesOfTheCode(t)
	for rule := range rows {
		assert.Contains(t, known, rule, "no such rule")
	}
	for rule := range known {
		assert.Contains(t, rows, rule, "no row of docs/internals/protocol.md has the rule")
	}
	var traces []string
	for _, dir := range []string{"internal/sim/testdata", "internal/lease/testdata/traces"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.txt"))
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		traces = append(traces, files...)
	}
	for _, path := range traces {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		file, err := filepath.Rel(root, path)
		require.NoError(t, err)
		link := "[" + name + "](../../" + filepath.ToSlash(file) + ")"
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Contains(t, table, link, "a trace without a row")
		for _, rules := range leftOut.FindAllStringSubmatch(string(text), -1) {
			names := ruleName.FindAllString(rules[1], -1)
			inRow := func(rule string) bool { return strings.Contains(rows[rule], link) }
			assert.True(t, len(names) == 0 || slices.ContainsFunc(names, inRow),
				"%s is not in the row of %s", name, rules[1])
		}
	}
}

// rulesOfTheCode returns the names of all rules, as traces write them.
func rulesOfTheCode(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for _, r := range mutant.All {
		if strings.HasPrefix(r.Name, "Rule") {
			names[r.Name] = true
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "internal/model/rules.go"), nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && v.Names[0].IsExported() {
			names["node."+v.Names[0].Name] = true
		}
		return true
	})
	return names
}
