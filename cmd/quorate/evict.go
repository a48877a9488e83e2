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
		Short: "End the hold that has a token, so that the next process gets in",
		Long: `Ends the hold of a name that has the token, as inspect prints it, and waits until
it is over. The holder learns of it at once: its context ends, lock and its like
end their command. A holder that is stopped, dead or cut off loses the name when
its lease ends, and no other process gets in before.

What one process holds with one claim ends together. The process may claim the
name again, behind those that wait.

Exit status:
  0   the hold is over
  1   no claim holds the name with that token
  69  too few nodes could be asked
  75  the holder goes on: it renews its lease, and does not hear of it
  64  the command line is wrong`,
		Example: `  quorate evict nightly-report 1795671600000000000
  quorate evict nightly-report $(quorate inspect nightly-report --json | jq -r '.holders[0].token')`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil {
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("%q is no token: quorate inspect prints it", args[1]))
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
