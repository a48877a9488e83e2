package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/inspect"
)

func evictCommand() *cobra.Command {
	var t cli.Target
	var asJSON bool
	cmd := &cobra.Command{
		Use: "evict NAME TOKEN", SuggestFor: []string{"kill", "unlock", "release", "steal"},
		Short: "End a hold, so that the next process gets the lock",
		Long: `Ends the hold with the given token, which "quorate inspect" prints, and waits
until it is over. The holder is notified right away: its context ends, and lock,
sem, once and leader stop their command. If the holder is stopped, dead or cut
off, the hold ends when its lease expires.

The process may ask for the name again, but it queues behind the processes that
are already waiting.

Exit status:
  0   the hold is over
  1   no process holds the name with that token
  69  too few nodes could be asked
  75  the holder is still renewing its lease and has not received the eviction
  64  the command line is wrong`,
		Example: `  quorate evict nightly-report 1795671600000000000
  quorate evict nightly-report $(quorate inspect nightly-report --json | jq -r '.holders[0].token')`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil {
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("%q is not a token: \"quorate inspect\" prints it", args[1]))
			}
			return t.Asking(func(_ context.Context, cmd *cobra.Command, q *quorate.Quorum) error {
				began := time.Now()
				// It takes one lease of the holder at most.
				err := inspect.Evict(cmd.Context(), q, args[0], token)
				switch {
				case errors.Is(err, quorate.ErrInvalid):
					return cli.NewExit(cli.ExitUsage, cli.Plain(err))
				case errors.Is(err, quorate.ErrNotHeld):
					return cli.NewExit(1, cli.Plain(err))
				case errors.Is(err, quorate.ErrHeld):
					return cli.NewExit(cli.ExitHeld, cli.Plain(err))
				case err != nil:
					return cli.NewExit(cli.ExitNoQuorum, cli.Plain(err))
				case asJSON:
					printJSON(cmd.OutOrStdout(), evicted{args[0], token, time.Since(began)})
				default:
					fmt.Fprintf(cmd.OutOrStdout(), "The hold of %q with token %d is over.\n", args[0], token)
				}
				return nil
			})(cmd, args)
		},
	}
	t.NodeFlags(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// evicted is what --json prints.
type evicted struct {
	Name  string
	Token uint64
	Took  time.Duration
}
