package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/board"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/top"
)

func topCommand() *cobra.Command {
	var t cli.Target
	var every time.Duration
	cmd := &cobra.Command{
		Use: "top [PATTERN]", SuggestFor: []string{"watch", "monitor"},
		Short: "Show nodes, names, holders and queues in the terminal, refreshed",
		Long: `Shows the nodes, the names that are in use with their holders and queues, and
what has happened in the last five minutes, until q is pressed. PATTERN is one
of Redis, such as 'job:*'.

The arrows choose a name, enter shows its queue in order and what each node says
of it, and / filters by what is typed. A node that is down and a holder that
does not renew its lease come first, with a "!".

To look takes no claim and no vote. Once per look each node writes a key of its
own that expires, to show whether it takes locks. 200 names are looked at closely, those for
which most wait; the others are counted.`,
		Example: `  quorate top
  quorate top 'job:*' --every 5s`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkEvery(every); err != nil {
				return err
			}
			if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
				return cli.NewExit(cli.ExitUsage, errors.New(`top needs a terminal: "quorate ls" prints the names, "quorate ui" serves a page`))
			}
			q, done, err := t.Open(cmd.Context(), io.Discard)
			if err != nil {
				return err
			}
			defer done()
			return showTop(cmd.Context(), q, strings.Join(args, ""), every)
		},
	}
	t.NodeFlags(cmd)
	everyFlag(cmd, &every)
	return cmd
}

// showTop shows the board until a key or a signal ends it. All that it shows is
// printable, so it may write to the terminal itself.
func showTop(ctx context.Context, q *quorate.Quorum, pattern string, every time.Duration) error {
	p := tea.NewProgram(top.Model{})
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		watch(ctx, q, pattern, every, func(v board.View) { p.Send(v) })
	})
	_, err := p.Run()
	cancel()
	all.Wait()
	if err != nil && !errors.Is(err, tea.ErrInterrupted) {
		return cli.NewExit(1, err)
	}
	return nil
}
