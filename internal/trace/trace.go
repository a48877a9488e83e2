// Package trace has the form of the trace files in testdata: blocks of
// commands, and after "----" what they lead to. A comment may say which rule a
// trace shows, and what goes wrong without it.
//
//	# What it shows.
//	#
//	# without RuleExact: VIOLATION token
//
//	claim e
//	----
//	e holds, ticket +1, until 7.758s
//
// internal/sim plays traces of whole worlds, internal/lease those of one
// machine. internal/sim/testdata/README.md has the commands of both.
package trace

import (
	"fmt"
	"slices"
	"strings"
)

// Block is a part of a trace: commands, and what they lead to.
type Block struct {
	Before   []string // comments and empty lines
	Commands []string
	Output   []string
}

// Parse reads a trace file.
func Parse(text string) (blocks []Block, err error) {
	var b Block
	output := false
	end := func() {
		if len(b.Commands) > 0 {
			blocks = append(blocks, b)
			b = Block{}
		}
		output = false
	}
	for i, line := range strings.Split(strings.TrimRight(text, "\n")+"\n", "\n") {
		switch {
		case line == "":
			if !output && len(b.Commands) > 0 {
				return nil, fmt.Errorf("line %d: commands end without ----", i+1)
			}
			if output {
				end()
			} else {
				b.Before = append(b.Before, line)
			}
		case output:
			b.Output = append(b.Output, line)
		case line == "----":
			output = true
		case strings.HasPrefix(line, "#") && len(b.Commands) == 0:
			b.Before = append(b.Before, line)
		default:
			b.Commands = append(b.Commands, line)
		}
	}
	end()
	return blocks, nil
}

// Format writes a trace file.
func Format(blocks []Block) string {
	var s strings.Builder
	for i, b := range blocks {
		for _, l := range b.Before {
			fmt.Fprintln(&s, l)
		}
		for _, l := range b.Commands {
			fmt.Fprintln(&s, l)
		}
		fmt.Fprintln(&s, "----")
		for _, l := range b.Output {
			fmt.Fprintln(&s, l)
		}
		if i < len(blocks)-1 {
			fmt.Fprintln(&s)
		}
	}
	return s.String()
}

// Play plays a trace and returns it with the output that it has now. do carries
// out one command.
func Play(blocks []Block, do func(command string) []string) []Block {
	played := make([]Block, len(blocks))
	for i, b := range blocks {
		b.Output = nil
		for _, line := range b.Commands {
			b.Output = append(b.Output, do(line)...)
		}
		if len(b.Output) == 0 {
			b.Output = []string{"ok"}
		}
		played[i] = b
	}
	return played
}

// Output returns all that the blocks lead to.
func Output(blocks []Block) (lines []string) {
	for _, b := range blocks {
		lines = append(lines, b.Output...)
	}
	return lines
}

// Claim is what a trace says about a rule: without it some line of the output
// contains Wrong.
type Claim struct{ Rules, Wrong string }

// Claims returns what a trace says about rules. Several of them are joined by
// +.
func Claims(blocks []Block) (all []Claim) {
	for _, b := range blocks {
		for _, l := range b.Before {
			if rest, ok := strings.CutPrefix(l, "# without "); ok {
				rules, wrong, _ := strings.Cut(rest, ": ")
				all = append(all, Claim{rules, wrong})
			}
		}
	}
	return all
}

// Shows returns why a trace does not show what it says about a rule, empty if
// it does. right is its output, without is the output without the rule.
func (c Claim) Shows(right, without []string) string {
	contains := func(l string) bool { return strings.Contains(l, c.Wrong) }
	switch {
	case slices.Equal(right, without):
		return "nothing changes without " + c.Rules
	case !slices.ContainsFunc(without, contains):
		return fmt.Sprintf("without %s nothing contains %q:\n\t%s", c.Rules, c.Wrong, strings.Join(without, "\n\t"))
	case slices.ContainsFunc(right, contains):
		return fmt.Sprintf("%q also with %s", c.Wrong, c.Rules)
	}
	return ""
}
