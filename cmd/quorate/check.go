package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
)

// patience bounds what concerns every node, also one that does not answer.
const patience = 5 * time.Second

func checkCommand() *cobra.Command {
	var t target
	var all bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Ask every node what bears on safety, and say what is wrong",
		Long: `Asks every node for what bears on safety and says what is wrong with it.

Exit status 0: a majority of the nodes is ready to vote and nothing is wrong
with those that answer. 1: otherwise. 64: the command line is wrong.

With --all each node must be ready. Wait for that before you restart or replace
the next node: a node that has just been restarted does not vote for the guard
time, and the majority may not lack it and another one.`,
		Example: `  quorate check                                # for monitoring
  until quorate check --all; do sleep 2; done  # between two steps of a rolling restart`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, done, err := t.open(io.Discard) // the table says all
			if err != nil {
				return err
			}
			defer done()
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			r, err := q.Check(ctx)
			if bad := tell(cmd.OutOrStdout(), r); err != nil || bad || all && r.Ready < len(r.Nodes) {
				return &exit{code: 1}
			}
			return nil
		},
	}
	t.nodeFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "succeed only if every node is ready, not just a majority")
	return cmd
}

// tell prints the report; bad says that a node answers and is not fit for its task.
func tell(w io.Writer, r quorate.Report) (bad bool) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "NODE\tSTATE\tVERSION\tROLE\tPERSISTENCE\tEVICTION\tCLOCK\tROUND TRIP")
	for _, n := range r.Nodes {
		if n.Err != nil {
			fmt.Fprintf(tab, "%s\tunreachable\t-\t-\t-\t-\t-\t-\n", n.Node)
			continue
		}
		state, persistence := "ready", lo.Ternary(n.Version == "", "unknown", "no append-only file")
		if n.Recovering > 0 {
			state = "votes in " + n.Recovering.Round(100*time.Millisecond).String()
		}
		if n.AOF {
			persistence = "append-only, fsync " + lo.Ternary(n.Fsync == "", "unknown", n.Fsync)
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Node, state, orDash(n.Version), orDash(n.Role), persistence, orDash(n.Eviction),
			offset(n.Offset), n.RoundTrip.Round(10*time.Microsecond))
	}
	_ = tab.Flush()
	fmt.Fprintln(w)
	for _, n := range r.Nodes {
		if n.Err != nil {
			fmt.Fprintf(w, "%s cannot be asked: %v\n", n.Node, n.Err)
		}
		for _, warning := range n.Warnings {
			fmt.Fprintf(w, "%s: %s\n", n.Node, warning)
		}
		// That a node is still within its guard time is a warning too, but passes by itself.
		bad = bad || len(n.Warnings) > lo.Ternary(n.Recovering > 0, 1, 0)
	}
	if r.Ready >= r.Quorum {
		spare := r.Ready - r.Quorum
		fmt.Fprintf(w, "%d of %d nodes are ready, %d are needed: %s\n", r.Ready, len(r.Nodes), r.Quorum,
			lo.Ternary(spare > 0, fmt.Sprintf("%d more may fail.", spare), "none may fail."))
		return bad
	}
	fmt.Fprintf(w, "%d of %d nodes are ready, %d are needed: nothing can be locked.\n", r.Ready, len(r.Nodes), r.Quorum)
	if lo.SomeBy(r.Nodes, func(n quorate.NodeReport) bool { return n.Recovering > 0 }) {
		fmt.Fprintln(w, "If these nodes have never been used before, \"quorate bootstrap\" makes them ready at once.")
	}
	return bad
}

// offset tells how far a clock is ahead or behind, as far as that can be measured.
func offset(d time.Duration) string {
	if d.Abs() < time.Millisecond {
		return "same"
	}
	return fmt.Sprintf("%+.3fs", d.Seconds())
}

func orDash(s string) string { return lo.Ternary(s == "", "-", s) }

func bootstrapCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Declare brand-new nodes ready, once, before their first use",
		Long: `Declares that the nodes are brand-new: that no lease was ever given on them, so
that they may vote at once instead of sitting out their guard time.

Never call it after a failure. A node that lost its memory may have forgotten
leases that still run; if it votes again at once, two may hold the same lock.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, done, err := t.open(io.Discard)
			if err != nil {
				return err
			}
			defer done()
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			if err := q.Bootstrap(ctx); err != nil {
				return &exit{1, fmt.Errorf("%w\nEvery node must confirm. Those that did are ready; run it again when the others answer", plain(err))}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Declared %d nodes brand-new: they vote from now on.\n", core.Of(q).Size())
			return nil
		},
	}
	t.nodeFlags(cmd)
	return cmd
}
