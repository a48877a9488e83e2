package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/mutant"
)

const root = "../../../.."

// Each mark marks something, each rule has a mark, and the copies are Go.
func TestEachRuleIsMarked(t *testing.T) {
	t.Parallel()
	o, err := read(root)
	require.NoError(t, err)
	for name, text := range o.copies {
		copied, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		require.NoError(t, err)
		original, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		if name != overlaid {
			assert.Equal(t, strings.Count(string(original), "\n"),
				strings.Count(string(text), "\n"), "%s keeps its lines", name)
			assert.Equal(t, "mutant_", copied.Imports[0].Name.Name, name)
		}
	}
	page, err := os.ReadFile(filepath.Join(root, list))
	require.NoError(t, err)
	assert.Equal(t, o.table(), string(page), "run: go run ./internal/testkit/mutant/overlay -doc")
}

// The names of the list are different, and no mutants are left in this build.
func TestRules(t *testing.T) {
	t.Parallel()
	for i, r := range mutant.All {
		assert.Equal(t, i, mutant.Place(r.Name), r.Name)
	}
	assert.Panics(t, func() { mutant.Off("RuleExact") })
	assert.NotPanics(t, func() { mutant.Off()() })
}

// What a mark makes of its line.
func TestMarks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{"if a && b { //mutant:RuleExact\n}", "if (ON && (a && b) || !ON && (false)) {"},
		{"if x := f(); x { //mutant:RuleExact=a\n}", "if x := f(); (ON && (x) || !ON && (a)) {"},
		{"if a {\n} else if b { //mutant:RuleExact\n}", "} else if (ON && (b) || !ON && (false)) {"},
		{"switch {\ncase a: //mutant:RuleExact\n}", "case (ON && (a) || !ON && (false)):"},
		{"_ = a &&\n\tb //mutant:RuleExact", "(ON && (b) || !ON && (true))"},
		{"_ = a ||\n\tb //mutant:RuleExact", "(ON && (b) || !ON && (false))"},
		{"_ = a &&\n\t(a || b) && //mutant:RuleExact=b\n\tb", "(ON && ((a || b)) || !ON && (b)) &&"},
		{"return a //mutant:RuleExact=b", "if !ON { return b }; return a"},
		{"x = 1 //mutant:RuleExact", "if ON { x = 1 } else {  }"},
		{"y := 1 //mutant:RuleExact=2\n_ = y", "y := 1; if !ON { y = 2 }"},
		{"g() //mutant:RuleExact=defer g()", "if ON { g() } else { defer g() }"},
		{"x = 2 * x //mutant:ConstRound", "x = mutant_.Scaled(PLACE, 2 * x)"},
	} {
		f := &file{name: "x.go", text: []byte("package x\n\nfunc _() bool {\n" + c.line + "\n}\n"),
			marked: map[string]map[string]bool{}}
		text, err := f.rewrite()
		assert.NoError(t, err, c.line)
		want := strings.NewReplacer("ON", "(mutant_.On(2))", "PLACE",
			strconv.Itoa(mutant.Place("ConstRound"))).Replace(c.want)
		assert.Contains(t, string(text), want, c.line)
	}
}

// A mark that marks nothing is an error, and so is one of an unknown rule.
func TestWrongMarks(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"x = 1 //mutant:RuleExcat":                     `x.go:4: there is no rule "RuleExcat"`,
		"y := 1 //mutant:RuleExact":                    "x.go:4: nothing that //mutant:RuleExact can mark begins on this line",
		"return a //mutant:RuleExact":                  "nothing that",
		"//mutant:RuleExact":                           "nothing that",
		"_ = a &&\n\tb && a //mutant:RuleExact":        "nothing that",
		"for a { //mutant:RuleExact\n}":                "nothing that",
		"if a { //mutant:ConstRound\n}":                "nothing that",
		"switch x {\ncase 1, 2: //mutant:RuleExact\n}": "nothing that",
	} {
		f := &file{name: "x.go", text: []byte("package x\n\nfunc _() bool {\n" + line + "\n}\n"),
			marked: map[string]map[string]bool{}}
		_, err := f.rewrite()
		assert.ErrorContains(t, err, want, line)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.go"), []byte("package x\n"), 0o644))
	_, err := read(dir)
	assert.ErrorContains(t, err, "no mark names rule RuleExact")
}
