// Command quorate uses locks on a quorum of Redis masters from the shell, and
// shows on one machine, without any Redis, what such a lock does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/child"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

func execute(args []string, stdout, stderr io.Writer) int {
	redis.SetLogger(silent{})
	root := rootCommand()
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for those of the process
	out := &sink{w: stdout}
	root.SetOut(cli.Printable{W: out})
	stderr = cli.Printable{W: stderr}
	root.SetErr(stderr)
	cmd, err := root, cli.Unknown(root, args)
	if err == nil {
		cmd, err = root.ExecuteC()
	}
	e, ok := errors.AsType[*cli.Exit](err)
	if out.err != nil && (err == nil || ok && e.Err == nil) { // the output was to say all
		err = cli.NewExit(cli.ExitOutput, fmt.Errorf("could not write the output: %w", out.err))
		e, ok = errors.AsType[*cli.Exit](err)
	}
	if err == nil {
		return 0
	}
	if !ok {
		// Only cobra's own errors come without a status: flags and arguments.
		e = cli.NewExit(cli.ExitUsage, fmt.Errorf("%w (try %s --help)", err, cmd.CommandPath()))
	}
	if e.Err != nil {
		fmt.Fprintf(stderr, "quorate: %s\n", cli.Lines(cli.InFlags(e.Err.Error())))
	}
	return e.Code
}

// sink remembers that a write has failed. A command whose report was not read
// must not end as one that was.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(text []byte) (int, error) {
	n, err := s.w.Write(text)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

// silent is for go-redis's own log: the library reports what matters in it.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "quorate",
		Short: "Locks on a majority of independent Redis servers",
		Long: `Quorate holds a lock on a majority of 1, 3 or 5 independent Redis servers.

New here? "quorate demo" shows a lock at work in 15 seconds, without Redis. Then
"quorate nodes" gives you nodes to try things out.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Version = buildVersion()
	root.SetUsageFunc(cli.Usage)
	root.SetVersionTemplate("quorate {{.Version}}\n")
	root.AddCommand(lockCommand(), semCommand(), leaderCommand(), onceCommand(), everyCommand(), listCommand(),
		inspectCommand(), watchCommand(), evictCommand(), topCommand(), uiCommand(), checkCommand(),
		bootstrapCommand(), membersCommand(), nodesCommand(), demoCommand(), versionCommand())
	root.AddCommand(demoParts()...)
	root.AddCommand(child.GuardCommands()...)
	return root
}
