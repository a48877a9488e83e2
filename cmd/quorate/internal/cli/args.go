package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/fault"
)

// CommandArgs wants a name, --, and a command.
func CommandArgs(cmd *cobra.Command, args []string) error { return WantCommand(cmd, args, "NAME") }

// WantCommand wants some words, --, and a command. The error names all that is
// missing.
func WantCommand(cmd *cobra.Command, args []string, words ...string) error {
	verb, dash := cmd.Name(), cmd.ArgsLenAtDash()
	usage := "quorate " + strings.Replace(cmd.Use, "[flags] ", "", 1)
	before := dash
	if dash < 0 {
		before = len(args)
	}
	switch {
	case dash < 0 && before > len(words):
		return fmt.Errorf("%s: put -- before the command to run: %s", verb, usage)
	case before > len(words):
		return fmt.Errorf("%s: want %s before --, got %d: %s", verb, fault.Count(len(words), "word"), before, usage)
	}
	missing := slices.Clone(words[before:])
	if f := cmd.Flags().Lookup("permits"); f != nil && !f.Changed {
		missing = append(missing, "-n PERMITS")
	}
	if dash < 0 {
		missing = append(missing, "--")
	}
	if len(args) == before {
		missing = append(missing, "CMD")
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%s: missing %s: %s", verb, strings.Join(missing, ", "), usage)
}

// NameOrCommand wants a name alone with one of two flags, and what CommandArgs
// wants without.
func NameOrCommand(cmd *cobra.Command, args []string, flag string, set bool,
	other string, otherSet bool) error {
	switch verb := cmd.Name(); {
	case set && otherSet:
		return fmt.Errorf("%s: pass either %s or %s, not both", verb, flag, other)
	case !set && !otherSet:
		return CommandArgs(cmd, args)
	case len(args) != 1:
		return fmt.Errorf("%s: %s and %s take one name and no command", verb, flag, other)
	}
	return nil
}
