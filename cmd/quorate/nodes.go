package main

import (
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/embedded"
)

func nodesCommand() *cobra.Command {
	var n, port int
	cmd := &cobra.Command{
		Use: "nodes", SuggestFor: []string{"serve", "start"},
		Short: "Run Redis-compatible nodes in this process, to try things out",
		Long: `Runs Redis-compatible nodes on the loopback interface until interrupted.

They keep everything in memory and end with this process, so use them to try
things out, never in production. They vote right away, without bootstrap. They run
only the scripts of this version of quorate.`,
		Example: `  quorate nodes                      # copy the line it prints into another terminal
  quorate nodes -n 5 --port 7000     # 127.0.0.1:7000 to 7004`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 || n > 31 {
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("-n %d: must be between 1 and 31; choose 1, 3 or 5", n))
			}
			if port < 0 || port+n > 65536 {
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("--port %d: no such ports", port))
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			nodes, err := embedded.StartAt(n, port)
			if err != nil {
				return cli.NewExit(1, err)
			}
			defer closeSoon(nodes)
			fmt.Fprintf(cmd.OutOrStdout(), "export QUORATE_NODES=%s\n", strings.Join(nodes.URLs(), ","))
			fmt.Fprintln(cmd.ErrOrStderr(), "Serving until interrupted (Ctrl-C). Everything is in memory.")
			<-ctx.Done()
			return nil
		},
	}
	cmd.Flags().IntVarP(&n, "count", "n", 3, "how many nodes")
	cmd.Flags().IntVar(&port, "port", 0, "port of the first node; the others follow (default: free ports)")
	return cmd
}

// closeSoon closes the nodes, for a second at most: a command that is under way
// must not keep the process from its end.
func closeSoon(nodes *embedded.Nodes) {
	closed := make(chan struct{})
	go func() { defer close(closed); nodes.Close() }()
	select {
	case <-closed:
	case <-time.After(time.Second):
	}
}
