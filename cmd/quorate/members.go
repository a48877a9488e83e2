package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

func membersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "members",
		Short: "Show and change the set of nodes",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(membersListCommand(), membersAddCommand(), membersRemoveCommand(), membersReplaceCommand(),
		membersMoveCommand(), membersSetCommand(), membersUndoCommand())
	return cmd
}

func membersListCommand() *cobra.Command {
	var t cli.Target
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Print the recorded set and whether each node belongs to it",
		Long: `Prints the set that the nodes have recorded, and whether each node belongs to it.

Exit status:
  0   a set is recorded, and every listed node belongs to it
  1   no set is recorded, or a node does not answer or does not belong to it
  64  the command line is wrong

With --json it prints the report of "quorate check" as one JSON document.`,
		Args: cobra.NoArgs,
		RunE: t.Asking(func(ctx context.Context, cmd *cobra.Command, q *quorate.Quorum) error {
			r, _ := q.Check(ctx) // its error repeats what the report says
			if asJSON {
				printJSON(cmd.OutOrStdout(), r)
			} else {
				tellMembers(cmd.OutOrStdout(), r)
			}
			if !r.Set.Recorded || lo.SomeBy(r.Nodes,
				func(n quorate.NodeReport) bool { return n.Membership != quorate.NodeMember || n.Err != nil }) {
				return &cli.Exit{Code: 1}
			}
			return nil
		}),
	}
	t.NodeFlags(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// tellMembers prints how each node stands to the set.
func tellMembers(w io.Writer, r quorate.Report) {
	r = cli.Clean(r)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "NODE\tIN THE SET")
	for i := range r.Nodes {
		fmt.Fprintf(tab, "%s\t%s\n", r.Nodes[i].Node, standing(&r.Nodes[i])+role(&r.Set, r.Nodes[i].Node))
	}
	_ = tab.Flush()
	fmt.Fprintln(w)
	tellSet(w, r)
	for i := range r.Nodes {
		if n := &r.Nodes[i]; n.Err != nil {
			fmt.Fprintf(w, "%s did not answer: %v\n", n.Node, n.Err)
		}
	}
}

// role says what becomes of a member while nodes are being exchanged.
func role(s *quorate.SetReport, addr string) string {
	switch {
	case slices.Contains(s.Entering, addr):
		return ", joining"
	case slices.Contains(s.Leaving, addr):
		return ", leaving"
	case len(s.Entering)+len(s.Leaving) > 0 && (slices.Contains(s.Members, addr) ||
		lo.SomeBy(lo.Values(s.Also), func(also []string) bool { return slices.Contains(also, addr) })):
		return ", staying"
	}
	return ""
}
