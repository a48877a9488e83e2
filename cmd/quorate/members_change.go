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

	"github.com/quorate/quorate/internal/core"
)

// membersHelp is what the help of each command says that exchanges nodes.
const membersHelp = `
Locks are held, waited for and passed on all the while. The command says on the
standard error what it waits for. --nodes is the list of before, or any list with
nodes of the set. The settings of the set count, whatever --guard says.

If it is interrupted (Ctrl-C), or ends at --timeout, it gives the exchange up if
that is still possible, and says what the set is. An exchange that is left
half-way is safe: the same command once more finishes it, "quorate members undo"
gives it up. An exchange that another operator has left half-way is finished
first.

Afterwards give the new list to all clients, one after the other. Those that run
follow by themselves.

Exit status:
  0   the set is as wanted
  1   it is not; the message says what the set is, and what to do
  64  the command line is wrong`

func membersAddCommand() *cobra.Command {
	return exchangeCommand("add URL...", "Add nodes to the set, while locks are held", `Adds nodes to the set. Each is an empty server, or one that was a node of this set
before. It takes two guard times: the new nodes take in what the others have, and
then old leases end.
`, `  quorate members add lock-d:6379 lock-e:6379   # three nodes become five`, cobra.MinimumNArgs(1),
		func(args []string) core.Exchange { return core.Exchange{Add: args} })
}

func membersRemoveCommand() *cobra.Command {
	return exchangeCommand("remove ADDRESS...", "Remove nodes from the set, while locks are held", `Removes nodes from the set. They may be down for good. It takes about the guard
time. Stop the servers afterwards.
`, `  quorate members remove lock-c:6379`, cobra.MinimumNArgs(1),
		func(args []string) core.Exchange { return core.Exchange{Remove: args} })
}

func membersReplaceCommand() *cobra.Command {
	return exchangeCommand("replace OLD NEW", "Replace a node of the set by another one, while locks are held", `Replaces a node of the set, which may be down for good, by an empty server at
another address. It takes two guard times. A server that was emptied and keeps
its address needs no command.
`, `  quorate members replace lock-c:6379 lock-d:6379`, cobra.ExactArgs(2),
		func(args []string) core.Exchange { return core.Exchange{Add: args[1:], Remove: args[:1]} })
}

func membersUndoCommand() *cobra.Command {
	return exchangeCommand("undo", "Give up an exchange of nodes that was left half-way", `Gives up an exchange of nodes that was left half-way, or is under way: the set is
as it was before. It takes moments, and does not wait for nodes that were to be
added.
`, "", cobra.NoArgs, func([]string) core.Exchange { return core.Exchange{Undo: true} })
}

// exchangeCommand is a command that exchanges nodes.
func exchangeCommand(use, short, long, example string, args cobra.PositionalArgs, what func(args []string) core.Exchange) *cobra.Command {
	var t target
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long + membersHelp, Example: example,
		Args: func(cmd *cobra.Command, given []string) error {
			if timeout <= 0 {
				return errors.New("members: --timeout must be positive")
			}
			return args(cmd, given)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q, done, err := t.open(cmd.Context(), io.Discard) // the error says all
			if err != nil {
				return err
			}
			defer done()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			x := what(args)
			x.Progress = func(p core.ExchangeProgress) { fmt.Fprintf(cmd.ErrOrStderr(), "quorate: %s\n", tellProgress(p)) }
			if err := core.CoreOf(q).Exchange(ctx, x); err != nil {
				return &exit{1, plain(core.WrapError("members "+cmd.Name(), "", err))}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The set is now: %s\n", strings.Join(core.CoreOf(q).Recorded(ctx).Addrs(), " "))
			if !x.Undo {
				fmt.Fprintln(cmd.OutOrStdout(), "Clients that run follow by themselves. Give each the new list, one after the other.")
			}
			return nil
		},
	}
	t.nodeFlags(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait at most before the exchange is given up")
	return cmd
}

// stages are what the stages of an exchange mean to an operator.
var stages = map[string]string{
	"stable":   "one set counts",
	"learning": "the old nodes count, and the next set is prepared",
	"joint":    "the old nodes and the new ones count, a majority of each",
}

// tellProgress says in a line how far an exchange is.
func tellProgress(p core.ExchangeProgress) string {
	text := fmt.Sprintf("epoch %d: %s", p.Epoch, stages[p.Stage])
	if p.Await != "" {
		text += "; waiting for " + p.Await
	}
	if p.Left > 0 {
		text += fmt.Sprintf(", at least %v more", max(p.Left.Round(time.Second), time.Second))
	}
	return text
}
