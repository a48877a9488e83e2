package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/testkit/mutant"
)

const head = `# The rules

<!-- go run ./internal/testkit/mutant/overlay -doc writes this page. -->

Safety and liveness rest on these rules. Each has a mutant, the library without this one rule, and a test that notices it.
In the code a comment such as ` + "`//mutant:RuleExact`" + ` marks what a rule consists of. The build of the mutants has a switch in that place, and no other build has
([how](architecture.md#mutants)).

[Rules, proofs, mutants and traces](protocol.md#rules-proofs-mutants-and-traces) has the proof and the traces of each rule, and [Simulation](simulation.md#rules-and-their-mutants) the
schedules or the test by which its mutant is found. The rules of a node, ` + "`node.…`" +
	` there, are in ` + "[model/rules.go](../../internal/model/rules.go)" + `.
`

// table returns the page of the rules.
func (o *overlay) table() string {
	var b strings.Builder
	b.WriteString(head)
	for _, l := range mutant.Lists {
		fmt.Fprintf(&b, "\n## %s\n\n| Rule | What it says: what happens without it | Marked in |\n|---|---|---|\n",
			l.About)
		for _, r := range l.Rules {
			var files []string
			for _, f := range slices.Sorted(maps.Keys(o.marked[r.Name])) {
				files = append(files, fmt.Sprintf("[%s](../../%s)", strings.TrimPrefix(f, "internal/"), f))
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", r.Name, r.Without, strings.Join(files, ", "))
		}
	}
	return b.String()
}
