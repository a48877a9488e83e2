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
)

// Exit statuses of our own, as far as they have a name in sysexits.h.
const (
	exitUsage    = 64 // the command line is wrong
	exitNoQuorum = 69 // too few nodes could be asked
	exitLost     = 70 // the lock was lost while the command ran
	exitOutput   = 74 // the output could not be written
	exitHeld     = 75 // another client holds the lock, or is ahead
)

// exit is an error with the status to leave with. With err nil all has been
// said.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	redis.SetLogger(silent{})
	root := command()
	root.SetArgs(args)
	out := &sink{w: stdout}
	root.SetOut(printable{out})
	stderr = printable{stderr}
	root.SetErr(stderr)
	err := root.Execute()
	e, ok := errors.AsType[*exit](err)
	if out.err != nil && (err == nil || ok && e.err == nil) { // the output was to say all
		err = &exit{exitOutput, fmt.Errorf("the output could not be written: %w", out.err)}
		e, ok = errors.AsType[*exit](err)
	}
	if err == nil {
		return 0
	}
	if !ok {
		// Only cobra's own errors come without a status: flags and arguments.
		e = &exit{exitUsage, fmt.Errorf("%w (try quorate --help)", err)}
	}
	if e.err != nil {
		fmt.Fprintf(stderr, "quorate: %s\n", inFlags(e.err.Error()))
	}
	return e.code
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

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "quorate",
		Short: "Locks on a quorum of independent Redis masters",
		Long: `Quorate holds a lock on a majority of 1, 3, 5 … independent Redis masters.

New here? "quorate demo" shows it at work in 15 seconds and needs no Redis.
"quorate nodes" then gives you nodes to play with.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Version = buildVersion()
	root.SetVersionTemplate("quorate {{.Version}}\n")
	root.AddCommand(lockCommand(), semCommand(), leaderCommand(), onceCommand(), everyCommand(), listCommand(), inspectCommand(), evictCommand(), topCommand(), uiCommand(), checkCommand(), bootstrapCommand(), membersCommand(), nodesCommand(), demoCommand(), versionCommand())
	root.AddCommand(demoParts()...)
	root.AddCommand(guardCommands()...)
	return root
}
