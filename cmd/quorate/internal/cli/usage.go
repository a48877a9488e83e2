package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// connection marks the flags that say how to reach the nodes. Every command has
// them, so its help shows them last.
const connection = "connection"

// connectionFlags adds flags with that mark.
func connectionFlags(cmd *cobra.Command, add func(*pflag.FlagSet)) {
	group := pflag.NewFlagSet("", pflag.ContinueOnError)
	group.SortFlags = false
	add(group)
	group.VisitAll(func(f *pflag.Flag) { f.Annotations = map[string][]string{connection: nil} })
	cmd.Flags().AddFlagSet(group)
}

// helpWidth is where the help of a flag is wrapped.
const helpWidth = 100

// Usage prints how a command is called. A command's own flags come first, in
// the order in which they were added: the most important ones first.
func Usage(c *cobra.Command) error {
	w := c.OutOrStderr()
	fmt.Fprint(w, "Usage:")
	if c.Runnable() {
		fmt.Fprintf(w, "\n  %s", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n  %s [command]", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprintf(w, "\n\nExamples:\n%s", c.Example)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprint(w, "\n\nCommands:")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(w, "\n  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	own, shared := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Flags().SortFlags, own.SortFlags, shared.SortFlags = false, false, false
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, is := f.Annotations[connection]; is {
			shared.AddFlag(f)
		} else {
			own.AddFlag(f)
		}
	})
	usageOf(w, "Flags", own)
	usageOf(w, "Connection flags", shared)
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n\n\"%s [command] --help\" describes a command.", c.CommandPath())
	}
	fmt.Fprintln(w)
	return nil
}

func usageOf(w io.Writer, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(w, "\n\n%s:\n%s", title, strings.TrimRight(flags.FlagUsagesWrapped(helpWidth), "\n"))
	}
}

// Unknown returns an error if args name a command that does not exist, with the
// names that may have been meant. Cobra itself prints the help of the parent
// for that, and reports success, if --help is given as well.
func Unknown(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	if len(args) > 0 && args[0] == "help" {
		args = args[1:]
	}
	c := root
	for _, word := range args {
		switch {
		// Cobra's own commands, for completion.
		case !c.HasSubCommands() || word == "--" || strings.HasPrefix(word, "__"):
			return nil
		case strings.HasPrefix(word, "-"):
			continue
		}
		at := slices.IndexFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == word })
		if at < 0 {
			return NewExit(ExitUsage, fmt.Errorf("unknown command %.32q%s (%s --help lists all)",
				word, meant(c, word), c.CommandPath()))
		}
		c = c.Commands()[at]
	}
	return nil
}

// meant asks whether another command was meant.
func meant(c *cobra.Command, word string) string {
	c.SuggestionsMinimumDistance = 2
	all := c.SuggestionsFor(word)
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return ": did you mean " + strings.Join(slices.Compact(all), " or ") + "?"
}
