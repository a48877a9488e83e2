package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/operator"
)

// membersHelp is what the help of each command says that changes the set.
const membersHelp = `
Locks work as usual during the change. A change that would end existing holds is
refused without --yes. The command prints what it is waiting for. More than half of
the nodes in --nodes must be in the set: before the change, that is the old list.

If you press Ctrl-C or --timeout expires, it abandons the change if that is still
possible, and prints what the set is. An unfinished change is safe: run the same
command again to finish it, or "quorate members undo" to abandon it. If another
operator left a change unfinished, the command finishes that one first.

Once it exits with 0, running clients have followed: give all clients the new list,
then stop the removed servers. Otherwise, the message says how long to keep these
servers running.

Exit status:
  0   the set has been changed
  1   the set has not been changed; the message says what the set is, and what to do
  64  the command line is wrong`

func membersAddCommand() *cobra.Command {
	return exchangeCommand("add URL...", "Add nodes to the set, while locks are held",
		`Adds nodes to the set. Each must be an empty server, or a former node of this set.
This takes two guard times: one to copy the data from the other nodes, and one for
old leases to expire.
`, `  quorate members add lock-d:6379 lock-e:6379   # three nodes become five`, cobra.MinimumNArgs(1),
		func(args []string) operator.Exchange { return operator.Exchange{Add: args} })
}

func membersRemoveCommand() *cobra.Command {
	return exchangeCommand("remove ADDRESS...", "Remove nodes from the set, while locks are held",
		`Removes nodes from the set, even if they are permanently lost. This takes one and
a half guard times. Don't stop the servers until the command has exited with 0. It
can end a hold on a name that several clients contend for, so it requires --yes.
`, `  quorate members remove lock-c:6379 --yes`, cobra.MinimumNArgs(1),
		func(args []string) operator.Exchange { return operator.Exchange{Remove: args} })
}

func membersReplaceCommand() *cobra.Command {
	return exchangeCommand("replace OLD NEW", "Replace a node of the set, while locks are held",
		`Replaces a node of the set, even if it is permanently lost, with an empty server
at another address. This takes two and a half guard times. If you replace a server
with an empty one at the same address, you don't need this command.
`, `  quorate members replace lock-c:6379 lock-d:6379`, cobra.ExactArgs(2),
		func(args []string) operator.Exchange { return operator.Exchange{Add: args[1:], Remove: args[:1]} })
}

func membersMoveCommand() *cobra.Command {
	var keep bool
	cmd := exchangeCommand("move OLD NEW [OLD NEW]...", "Change the address of a node of the set",
		`Changes the address of a node of the set. Its server must answer at the new
address with the same data. This takes half a guard time, which running clients
need to follow.

OLD doesn't have to be reachable. If the only node or a majority has moved, pass
the new addresses in --nodes, and name every moved node in one command. It then
waits up to a minute to make sure that nothing answers at OLD. If you copied the
data, stop the old server first, and never start it from those files again.

With --keep, the node keeps its old addresses as well, for example a plain port in
addition to a TLS port, or an address in another network. All of them must always
lead to the same server. A client dials the address in its own list. Without
--keep, the node has only NEW, which may be one of its current addresses.
`, `  quorate members move 10.0.0.7:6379 lock-c:6379
  quorate members move --nodes redis:6379 localhost:6379 redis:6379
  quorate members move --keep lock-c:6379 rediss://lock-c:6380`,
		func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args)%2 != 0 {
				return errors.New("members move: pass the old and the new address of each node")
			}
			return nil
		},
		func(args []string) (x operator.Exchange) {
			for pair := range slices.Chunk(args, 2) {
				x.Move = append(x.Move, operator.Move{From: pair[0], To: pair[1], Keep: keep})
			}
			return x
		})
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the old addresses as well")
	return cmd
}

func membersSetCommand() *cobra.Command {
	var s nodeset.Shared
	cmd := exchangeCommand("set", "Change the settings that all clients of the set share",
		`Changes the settings that all clients of the set share. Settings that you don't
pass stay as they are. This takes about as long as the old or the new guard time,
whichever is longer.
`, `  quorate members set --guard 40s   # for longer leases`, func(cmd *cobra.Command, args []string) error {
			if s == (nodeset.Shared{}) || min(s.Guard, s.Retention, s.Skew) < 0 {
				return errors.New("members set: pass --guard, --retention or --skew, none below 0")
			}
			return cobra.NoArgs(cmd, args)
		}, func([]string) operator.Exchange { return operator.Exchange{Shared: &s} })
	cmd.Flags().DurationVar(&s.Guard, "guard", 0, "how long a node waits after a restart before it votes")
	cmd.Flags().DurationVar(&s.Retention, "retention", 0,
		"how long a node remembers the last ticket of an unused name")
	cmd.Flags().DurationVar(&s.Skew, "skew", 0, "how far the nodes' clocks may differ")
	return cmd
}

// interrupts says what a change would end, empty for nothing.
func interrupts(x operator.Exchange, c *nodeset.Configuration, ends operator.Ends) string {
	switch {
	case ends.Silent > 0:
		return fmt.Sprintf("too few of the nodes have been up, with their data, for the new guard time, and the "+
			"others don't vote until they have: all locks would be lost, and none could be acquired for %v. Run "+
			"the command again after that time or, if the interruption is acceptable, pass --yes",
			max(time.Second, ends.Silent.Round(time.Second)))
	case ends.Smaller:
		return "if several clients contend for a name, its holder may have a majority only with the help of the " +
			"nodes that leave, and would lose its hold within its TTL. If that is acceptable, pass --yes"
	case x.Shared == nil:
		return ""
	}
	now := c.LeaseGuard()/2 - c.Skew()
	then := cmp.Or(x.Shared.Guard, c.Next.Guard)/2 - cmp.Or(x.Shared.Skew, c.Next.Skew)
	if then >= now {
		return ""
	}
	return fmt.Sprintf("clients with a TTL above %v (up to %v is allowed now) would lose their holds and be "+
		"refused. If that is acceptable, or no client has such a TTL, pass --yes", then, now)
}

func membersUndoCommand() *cobra.Command {
	return exchangeCommand("undo", "Abandon an unfinished change of the set",
		`Abandons a change to the set that is unfinished or still running. Afterwards the
set is as it was before. This takes only moments, and doesn't wait for the nodes
that were being added.
`, "", cobra.NoArgs, func([]string) operator.Exchange { return operator.Exchange{Undo: true} })
}

// exchangeCommand is a command that exchanges nodes.
func exchangeCommand(use, short, long, example string, args cobra.PositionalArgs,
	what func(args []string) operator.Exchange) *cobra.Command {
	var t cli.Target
	var timeout time.Duration
	var yes bool
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long + membersHelp, Example: example,
		Args: func(cmd *cobra.Command, given []string) error {
			if cmd.Flags().Changed("timeout") && timeout <= 0 {
				return errors.New("members: --timeout must be positive")
			}
			return args(cmd, given)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			// The log says what is waited for while too few nodes can decide.
			q, done, err := t.Open(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer done()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			x, before := what(args), (*nodeset.Configuration)(nil)
			ctx, cancel := context.WithTimeout(ctx, cmp.Or(timeout, enough(ctx, q, x)))
			defer cancel()
			x.Allow = func(c *nodeset.Configuration, ends operator.Ends) error {
				before = c
				if why := interrupts(x, c, ends); why != "" && !yes {
					return cli.NewExit(1, errors.New("nothing was changed: "+why))
				}
				return nil
			}
			x.Progress = func(p operator.Progress) { fmt.Fprintf(cmd.ErrOrStderr(), "quorate: %s\n", tellProgress(p)) }
			now, err := changed(ctx, q, x)
			if refused, is := errors.AsType[*cli.Exit](err); is {
				return refused
			} else if err != nil {
				return cli.NewExit(1, cli.Plain(core.WrapError("members "+cmd.Name(), "", err)))
			}
			tellChanged(cmd.OutOrStdout(), x, before, now)
			return nil
		},
	}
	t.NodeFlags(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "abandon the change after this time\n(default: 10m or "+
		"five guard times, whichever is longer)")
	cmd.Flags().BoolVar(&yes, "yes", false, "make the change even if it ends existing holds")
	return cmd
}

// enough is how long a change may take at most: the longest ones take two and a
// half guard times.
func enough(ctx context.Context, q *quorate.Quorum, x operator.Exchange) time.Duration {
	least, guard := 10*time.Minute, time.Duration(0)
	if c, err := core.CoreOf(q).Onlooker().Recorded(ctx); err == nil {
		guard = c.Guard()
	}
	if x.Shared != nil {
		guard = max(guard, x.Shared.Guard)
	}
	return max(least, 5*guard)
}

// changed makes a change, and returns what the set is then.
func changed(ctx context.Context, q *quorate.Quorum, x operator.Exchange) (*nodeset.Configuration, error) {
	if err := operator.Run(ctx, core.CoreOf(q), x); err != nil {
		return nil, err
	}
	return core.CoreOf(q).Onlooker().Configuration(ctx)
}

// tellChanged prints what a change has made of a set, and what is left to do.
// Clients get the new list before servers stop: a client that starts in between
// with the old list may find too few nodes that show the set.
func tellChanged(w io.Writer, x operator.Exchange, before, now *nodeset.Configuration) {
	fmt.Fprintf(w, "The set is now: %s\n", strings.Join(now.Addrs(), " "))
	if x.Undo {
		return
	}
	var left []string // by this change, or by one that it has finished first
	waited := false   // a change that drops an address waits until clients have followed
	for _, m := range before.Members {
		if now.Member(m.Identity) < 0 {
			left = append(left, m.Addr)
		}
		waited = waited || slices.ContainsFunc(m.All(), func(addr string) bool { return now.Place(addr) < 0 })
	}
	if waited {
		fmt.Fprintln(w, "Running clients have followed. Give all clients the new list.")
	} else {
		fmt.Fprintln(w, "Running clients follow by themselves. Give all clients the new list.")
	}
	if len(left) > 0 {
		fmt.Fprintf(w, "Then stop the removed servers: %s\n", strings.Join(left, " "))
	}
}

// stages are what the stages of an exchange mean to an operator.
var stages = map[quorate.Stage]string{
	quorate.StageStable:   "one set decides",
	quorate.StageLearning: "the old set decides while the next one is prepared",
	quorate.StageJoint:    "both sets decide, a majority of each",
}

// tellProgress says in a line how far an exchange is.
func tellProgress(p operator.Progress) string {
	text := fmt.Sprintf("epoch %d: %s", p.Epoch, stages[quorate.Stage(p.Stage)])
	if p.Await != "" {
		text += "; waiting for " + p.Await
	}
	if p.Left > 0 {
		text += fmt.Sprintf(", at least %v more", max(p.Left.Round(time.Second), time.Second))
	}
	return text
}
