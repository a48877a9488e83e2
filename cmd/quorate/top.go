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
		Use: "top [PATTERN]", SuggestFor: []string{"monitor"},
		Short: "Show nodes, names, holders and queues in the terminal, live",
		Long: `Shows the nodes, the names in use with their holders and queues, and what
happened in the last five minutes. Press q to quit. PATTERN is a Redis pattern
such as 'job:*'.

Choose a name with the arrow keys. Enter shows its queue in order and what each
node says, and / filters the names. Nodes that are down and holders that have
stopped renewing their lease come first, marked with a "!".

This doesn't affect the holders. Each refresh writes a short-lived key to every
node, to find out whether the node accepts locks. The 200 names with the most
waiters are shown in full; the others are only counted.`,
		Example: `  quorate top
  quorate top 'job:*' --every 5s`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkEvery(every); err != nil {
				return err
			}
			if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
				return cli.NewExit(cli.ExitUsage,
					errors.New(`top needs a terminal; use "quorate ls" or "quorate ui" instead`))
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
