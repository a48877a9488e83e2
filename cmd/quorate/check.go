package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

func checkCommand() *cobra.Command {
	var t cli.Target
	var j checkJob
	cmd := &cobra.Command{
		Use: "check", SuggestFor: []string{"doctor", "ping", "health"},
		Short: "Ask every node what affects safety, and say what is wrong",
		Long: `Asks every node for what affects safety and says what is wrong with it.

Exit status:
  0   all is well. With three nodes or more, one more may be restarted, or fail
      with its data. One node or two can spare none: they are ready
  1   locks work, but something is wrong, or the next node must not be restarted
      yet
  2   nothing can be locked: no majority of the nodes votes
  64  the command line is wrong
  74  the report could not be written

A node that was restarted does not vote for the guard time. If it lost its data,
any connected client then brings it what was recorded, this command as well.
Until that is done the next node must keep its data. With --wait the command
waits for that, tells on the standard error what it waits for, and ignores
warnings that do not pass by themselves.

It has each node write what a lock writes, at a key of its own that expires
within a second. A node that answers and refuses that "takes no locks".

With --all every node must be ready and caught up. With --json the report is one
JSON document.`,
		Example: `  quorate check         # for monitoring
  quorate check --wait  # between two steps of a rolling restart`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("timeout") && !j.wait {
				return errors.New("check: --timeout is for --wait")
			}
			if j.timeout <= 0 {
				return errors.New("check: --timeout must be positive")
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, done, err := t.Open(cmd.Context(), io.Discard) // the table says all
			if err != nil {
				return err
			}
			defer done()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			j.out, j.errs = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if status := j.run(ctx, q); status != 0 {
				return &cli.Exit{Code: status}
			}
			return nil
		},
	}
	t.NodeFlags(cmd)
	t.GuardFlag(cmd, " (default: the set's)")
	jsonFlag(cmd, &j.json)
	cmd.Flags().BoolVar(&j.all, "all", false, "every node must be ready, also where fewer would allow the next restart")
	cmd.Flags().BoolVar(&j.wait, "wait", false, "wait until the next node may be restarted")
	cmd.Flags().DurationVar(&j.timeout, "timeout", 10*time.Minute, "how long to wait at most, with --wait")
	return cmd
}

func bootstrapCommand() *cobra.Command {
	var t cli.Target
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Declare brand-new nodes ready, so that the first lock does not wait",
		Long: `Declares that the nodes are brand-new: no client has ever used them, so they may
vote at once instead of after their guard time. They record that they are the
set of this list, with --guard, --retention and --skew as settings of the set,
which all clients share.

It is for tests, CI, and a first deployment that does not want to wait.
Production never needs it. Leave it out of what runs at each start: nodes that
have all lost their data look brand-new, and a second holder could get in.

Nodes that have recorded a set keep it, and nothing is changed.`,
		Args: cobra.NoArgs,
		RunE: t.Asking(func(ctx context.Context, cmd *cobra.Command, q *quorate.Quorum) error {
			already := func(set []string) error {
				fmt.Fprintf(cmd.OutOrStdout(), "Already recorded, nothing changed: the set is %s.\n", strings.Join(set, " "))
				return nil
			}
			known, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			if c, err := core.CoreOf(q).Onlooker().Recorded(known); err == nil {
				return already(c.Addrs())
			}
			recorded, err := core.CoreOf(q).Record(ctx)
			if err = core.WrapError("bootstrap", "", err); errors.Is(err, quorate.ErrInvalid) {
				return cli.NewExit(1, cli.Plain(err)) // no node that answers later changes it
			} else if err != nil {
				return cli.NewExit(1, fmt.Errorf("%w\nEvery node must confirm; run it again when the others answer", cli.Plain(err)))
			}
			r, _ := q.Check(ctx)
			if !recorded { // the nodes have answered since, or another client was first
				return already(r.Set.Members)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Declared %s brand-new, with votes from now on.\n", fault.Count(len(r.Set.Members), "node"))
			fmt.Fprintf(cmd.OutOrStdout(), "The set is recorded, with a guard time of %v: clients with a ttl above %v are refused.\n", r.Set.Guard, r.Set.LongestTTL)
			return nil
		}),
	}
	t.NodeFlags(cmd)
	t.GuardFlag(cmd, " (default: 20s)")
	t.SharedFlags(cmd, "5m", "2s")
	return cmd
}
