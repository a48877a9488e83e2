package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/page"
)

func uiCommand() *cobra.Command {
	var t cli.Target
	var listen string
	var every time.Duration
	cmd := &cobra.Command{
		Use: "ui [PATTERN]", SuggestFor: []string{"web", "dashboard"},
		Short: "Show nodes, names, holders and queues in a local browser",
		Long: `Serves a page to a browser on this machine until interrupted. It shows the nodes,
the names in use with their holders and queues, and what happened in the last
five minutes. PATTERN is a Redis pattern such as 'job:*'.

The URL it prints contains a random token, and without the token a browser sees
nothing. The page can't change anything. It is not encrypted, so it is served only
on the loopback interface; to open it from another machine, use ssh -L.

This doesn't affect the holders. Each refresh writes a short-lived key to every
node, to find out whether the node accepts locks. The 200 names with the most
waiters are shown in full; the others are only counted.`,
		Example: `  quorate ui
  quorate ui 'job:*' --listen 127.0.0.1:8080`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkEvery(every); err != nil {
				return err
			}
			addr, err := page.Local(listen)
			if err != nil {
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("--listen %w", err))
			}
			q, done, err := t.Open(cmd.Context(), io.Discard)
			if err != nil {
				return err
			}
			defer done()
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
			if err != nil {
				return cli.NewExit(1, err)
			}
			return servePage(ctx, cmd.OutOrStdout(), q, l, strings.Join(args, ""), every)
		},
	}
	t.NodeFlags(cmd)
	everyFlag(cmd, &every)
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "loopback address; port 0 chooses a free port")
	return cmd
}

// servePage serves the page until ctx ends.
func servePage(ctx context.Context, out io.Writer, q *quorate.Quorum, l net.Listener,
	pattern string, every time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := page.New(l.Addr().(*net.TCPAddr))
	s := &http.Server{Handler: p, ReadHeaderTimeout: cli.Patience, ReadTimeout: cli.Patience,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		watch(ctx, q, pattern, every, p.Show)
	})
	all.Go(func() {
		<-ctx.Done()
		p.Close()
		last, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.Shutdown(last) != nil {
			_ = s.Close()
		}
	})
	fmt.Fprintln(out, p.URL())
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		cancel()
		return cli.NewExit(1, err)
	}
	return nil
}

// everyFlag says how long the pause between two looks is.
func everyFlag(cmd *cobra.Command, to *time.Duration) {
	cmd.Flags().DurationVar(to, "every", time.Second, "time between two refreshes, at least 100ms")
}

func checkEvery(every time.Duration) error {
	if every < 100*time.Millisecond {
		return cli.NewExit(cli.ExitUsage, fmt.Errorf("--every %v: must be at least 100ms", every))
	}
	return nil
}
