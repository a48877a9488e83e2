package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/operator"
)

// membersHelp is what the help of each command says that changes the set.
const membersHelp = `
Locks are held, waited for and passed on all the while. A change that would end
what clients hold is refused without --yes. The command says on the standard
error what it waits for. --nodes is the list of before, or any list with
nodes of the set.

If it is interrupted (Ctrl-C), or ends at --timeout, it gives the exchange up if
that is still possible, and says what the set is. An exchange that is left
half-way is safe: the same command once more finishes it, "quorate members undo"
gives it up. An exchange that another operator has left half-way is finished
first.

When it ends with 0, clients that run have followed: stop the servers that were
removed, and give the new list to all clients, one after the other. If it ends
otherwise, the message says how long these servers must run.

Exit status:
  0   the set is as wanted
  1   it is not; the message says what the set is, and what to do
  64  the command line is wrong`

func membersAddCommand() *cobra.Command {
	return exchangeCommand("add URL...", "Add nodes to the set, while locks are held", `Adds nodes to the set. Each is an empty server, or one that was a node of this set
before. It takes two guard times: the new nodes take in what the others have, and
then old leases end.
`, `  quorate members add lock-d:6379 lock-e:6379   # three nodes become five`, cobra.MinimumNArgs(1),
		func(args []string) operator.Exchange { return operator.Exchange{Add: args} })
}

func membersRemoveCommand() *cobra.Command {
	return exchangeCommand("remove ADDRESS...", "Remove nodes from the set, while locks are held", `Removes nodes from the set. They may be down for good. It takes a guard time
and a half. Stop the servers when it has ended with 0, and not before. It may end
a hold of a name for which several clients contend, so it wants --yes.
`, `  quorate members remove lock-c:6379 --yes`, cobra.MinimumNArgs(1),
		func(args []string) operator.Exchange { return operator.Exchange{Remove: args} })
}

func membersReplaceCommand() *cobra.Command {
	return exchangeCommand("replace OLD NEW", "Replace a node of the set by another one, while locks are held", `Replaces a node of the set, which may be down for good, by an empty server at
another address. It takes two guard times and a half. A server that was emptied
and keeps its address needs no command.
`, `  quorate members replace lock-c:6379 lock-d:6379`, cobra.ExactArgs(2),
		func(args []string) operator.Exchange { return operator.Exchange{Add: args[1:], Remove: args[:1]} })
}

func membersMoveCommand() *cobra.Command {
	var keep bool
	cmd := exchangeCommand("move OLD NEW", "Give a node of the set another address", `Gives a node of the set another address, at which its server answers with the
same data. It takes half a guard time: clients that run follow meanwhile.

With --keep the node has the new address beside those of before: a port with TLS
beside a plain one, or the address in another network. Both must lead to the same
server at all times. A client dials the address that its own list names. Without
--keep the node has NEW alone, which may be one of its addresses.
`, `  quorate members move 10.0.0.7:6379 lock-c:6379
  quorate members move --keep lock-c:6379 rediss://lock-c:6380`, cobra.ExactArgs(2),
		func(args []string) operator.Exchange {
			return operator.Exchange{Move: &operator.Move{From: args[0], To: args[1], Keep: keep}}
		})
	cmd.Flags().BoolVar(&keep, "keep", false, "the node has the addresses of before, too")
	return cmd
}

func membersSetCommand() *cobra.Command {
	var s nodeset.Shared
	cmd := exchangeCommand("set", "Change what all clients of the set share", `Changes what all clients of the set share. What is not given stays. It takes about
the longer one of the guard times of before and after.
`, `  quorate members set --guard 40s   # for longer leases`, func(cmd *cobra.Command, args []string) error {
		if s == (nodeset.Shared{}) || min(s.Guard, s.Retention, s.Skew) < 0 {
			return errors.New("members set: give --guard, --retention or --skew, none below 0")
		}
		return cobra.NoArgs(cmd, args)
	}, func([]string) operator.Exchange { return operator.Exchange{Shared: &s} })
	cmd.Flags().DurationVar(&s.Guard, "guard", 0, "how long a node that lost its data does not vote")
	cmd.Flags().DurationVar(&s.Retention, "retention", 0, "how long a node remembers the last ticket of a name that is no longer used")
	cmd.Flags().DurationVar(&s.Skew, "skew", 0, "the largest tolerated difference between the clocks of nodes")
	return cmd
}

// interrupts says what a change would end, empty for nothing.
func interrupts(x operator.Exchange, c *nodeset.Configuration, smaller bool) string {
	switch {
	case smaller:
		return "while several clients contend for a name, its holder may have a majority only with the nodes that leave. Then it loses what it holds within its ttl. If that is meant, say --yes"
	case x.Shared == nil:
		return ""
	}
	now := c.LeaseGuard()/2 - c.Skew()
	then := cmp.Or(x.Shared.Guard, c.Next.Guard)/2 - cmp.Or(x.Shared.Skew, c.Next.Skew)
	if then >= now {
		return ""
	}
	return fmt.Sprintf("clients with a ttl above %v, which may have one of up to %v now, lose what they hold and are refused. If that is meant, or no client has such a ttl, say --yes", then, now)
}

func membersUndoCommand() *cobra.Command {
	return exchangeCommand("undo", "Give up an exchange of nodes that was left half-way", `Gives up an exchange of nodes that was left half-way, or is under way: the set is
as it was before. It takes moments, and does not wait for nodes that were to be
added.
`, "", cobra.NoArgs, func([]string) operator.Exchange { return operator.Exchange{Undo: true} })
}

// exchangeCommand is a command that exchanges nodes.
func exchangeCommand(use, short, long, example string, args cobra.PositionalArgs, what func(args []string) operator.Exchange) *cobra.Command {
	var t cli.Target
	var timeout time.Duration
	var yes bool
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long + membersHelp, Example: example,
		Args: func(cmd *cobra.Command, given []string) error {
			if timeout <= 0 {
				return errors.New("members: --timeout must be positive")
			}
			return args(cmd, given)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q, done, err := t.Open(cmd.Context(), io.Discard) // the error says all
			if err != nil {
				return err
			}
			defer done()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			x, before := what(args), (*nodeset.Configuration)(nil)
			x.Allow = func(c *nodeset.Configuration, smaller bool) error {
				before = c
				if ends := interrupts(x, c, smaller); ends != "" && !yes {
					return cli.NewExit(1, errors.New("nothing was changed: "+ends))
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
			tellChanged(cmd.OutOrStdout(), x, before.Addrs(), now.Addrs())
			return nil
		},
	}
	t.NodeFlags(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait at most before the change is given up")
	cmd.Flags().BoolVar(&yes, "yes", false, "also if the change ends what clients hold")
	return cmd
}

// changed makes a change, and returns what the set is then.
func changed(ctx context.Context, q *quorate.Quorum, x operator.Exchange) (*nodeset.Configuration, error) {
	if err := operator.Run(ctx, core.CoreOf(q), x); err != nil {
		return nil, err
	}
	return core.CoreOf(q).Onlooker().Configuration(ctx)
}

// tellChanged prints what a change has made of a set, and what is left to do.
func tellChanged(w io.Writer, x operator.Exchange, before, now []string) {
	fmt.Fprintf(w, "The set is now: %s\n", strings.Join(now, " "))
	if left, _ := lo.Difference(before, now); len(x.Remove) > 0 && len(left) > 0 {
		fmt.Fprintf(w, "Stop the servers that have left: %s\n", strings.Join(left, " "))
	}
	if !x.Undo {
		fmt.Fprintln(w, "Clients that run have followed. Give each the new list, one after the other.")
	}
}

// stages are what the stages of an exchange mean to an operator.
var stages = map[quorate.Stage]string{
	quorate.StageStable:   "one set counts",
	quorate.StageLearning: "the old nodes count, and the next set is prepared",
	quorate.StageJoint:    "the old nodes and the new ones count, a majority of each",
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
