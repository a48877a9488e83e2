package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/demo"
)

func demoCommand() *cobra.Command {
	var cfg demo.Config
	var length float64
	var pause bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See a lock at work in 15 seconds, without Redis",
		Long: `Starts nodes and workers on this machine and has the workers compete for a lock.
It kills a worker while it holds the lock, then kills a node, and shows who held
the lock when, and that nothing went wrong.

With --pause, a worker sleeps through its lease and then writes. The demo shows
what happens to that write without a fence, and how a fence rejects it.

Exit status: 0 if everything went right, 1 if not.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case pause && (cmd.Flags().Changed("workers") || cmd.Flags().Changed("seconds")):
				return cli.NewExit(cli.ExitUsage,
					errors.New("--pause cannot be combined with --workers or --seconds: it uses two workers, and --ttl "+
						"sets its length"))
			case cfg.Nodes < 1 || cfg.Nodes > 9:
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("--nodes %d: must be between 1 and 9; try 3 or 5",
					cfg.Nodes))
			case cfg.Workers < 2 || cfg.Workers > 20:
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("--workers %d: must be between 2 and 20", cfg.Workers))
			case length < 2 || length > 600:
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("--seconds %v: must be between 2 and 600", length))
			case cfg.TTL < 200*time.Millisecond || cfg.TTL > 8*time.Second:
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("--ttl %v: must be between 200ms and 8s", cfg.TTL))
			}
			self, err := os.Executable()
			if err != nil {
				return cli.NewExit(1, err)
			}
			cfg.Length = time.Duration(length * float64(time.Second))
			cfg.Out = os.Stdout // as it is: the demo draws with escape sequences
			cfg.Program = program(self)
			cfg.Command = func(args ...string) *exec.Cmd { return exec.Command(self, args...) }
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			run := demo.Run
			if pause {
				run = demo.Pause
			}
			switch ok, err := run(ctx, cfg); {
			case errors.Is(err, demo.ErrInterrupted):
				return &cli.Exit{Code: 130}
			case err != nil:
				return cli.NewExit(1, fmt.Errorf("the demo failed: %w", err))
			case !ok:
				return &cli.Exit{Code: 1}
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&cfg.Nodes, "nodes", 3, "number of nodes")
	cmd.Flags().IntVar(&cfg.Workers, "workers", 5, "number of workers")
	cmd.Flags().Float64Var(&length, "seconds", 12, "approximate length in seconds")
	cmd.Flags().DurationVar(&cfg.TTL, "ttl", 1500*time.Millisecond,
		"how long the lock stays held after its holder dies")
	cmd.Flags().BoolVar(&pause, "pause", false, "show a stale write, and a fence that rejects it")
	return cmd
}

// program is how the reader has called this program. "go run" builds it
// in a directory of that kind.
func program(self string) string {
	if strings.Contains(self, "go-build") {
		return "go run ./cmd/quorate"
	}
	return filepath.Base(self)
}

// demoParts are the processes that a demo consists of. An interrupt at the
// terminal reaches them too; they leave it to the demo, and end with it.
func demoParts() []*cobra.Command {
	node := &cobra.Command{
		Use: demo.NodeCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			signal.Ignore(syscall.SIGINT)
			return demo.Node(os.Stdin, os.Stdout)
		},
	}
	var cfg demo.WorkerConfig
	worker := &cobra.Command{
		Use: demo.WorkerCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			signal.Ignore(syscall.SIGINT)
			cfg.Name = "demo"
			return demo.Worker(os.Stdin, os.Stdout, cfg)
		},
	}
	worker.Flags().StringSliceVar(&cfg.Nodes, "nodes", nil, "")
	worker.Flags().StringVar(&cfg.File, "file", "", "")
	worker.Flags().DurationVar(&cfg.TTL, "ttl", 0, "")
	worker.Flags().DurationVar(&cfg.Work, "work", 0, "")
	depositor := &cobra.Command{
		Use: demo.DepositorCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			signal.Ignore(syscall.SIGINT)
			cfg.Name = "demo"
			return demo.Depositor(os.Stdin, os.Stdout, cfg)
		},
	}
	depositor.Flags().StringSliceVar(&cfg.Nodes, "nodes", nil, "")
	depositor.Flags().StringVar(&cfg.File, "file", "", "")
	depositor.Flags().DurationVar(&cfg.TTL, "ttl", 0, "")
	return []*cobra.Command{node, worker, depositor}
}
