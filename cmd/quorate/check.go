package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

func checkCommand() *cobra.Command {
	var t cli.Target
	var j checkJob
	cmd := &cobra.Command{
		Use: "check", SuggestFor: []string{"doctor", "ping", "health"},
		Short: "Check every node and report what is wrong",
		Long: `Checks every node and reports what is wrong with it.

Exit status:
  0   all is well: every node of the set is ready and, with three or more nodes, you
      can restart one of them
  1   locks work, but there is a warning, or you must not restart the next node
      yet
  2   nothing can be locked, because fewer than a majority of the nodes vote
  64  the command line is wrong
  74  the report could not be written

A restarted node doesn't vote until the guard time has passed. If it lost its
data, any connected client repairs it, including this command. If a majority lost
their data, only a client that uses locks does. Don't restart the next node before
that. With --wait, the command waits until it is safe, prints what it is waiting
for, and ignores warnings that won't clear on their own.

The check writes a key to every node that expires within a second. If a node
answers but refuses the write, it is shown as "refuses locks".

With --all, every node must be ready and caught up. With --json, the report is a
JSON document.`,
		Example: `  quorate check         # for monitoring
  quorate check --wait  # between two steps of a rolling restart`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("timeout") && !j.wait {
				return errors.New("check: --timeout needs --wait")
			}
			if j.timeout <= 0 {
				return errors.New("check: --timeout must be positive")
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, done, err := t.Open(cmd.Context(), io.Discard) // the table says all
			if err != nil {
				return err
			}
			defer done()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			j.out, j.errs = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if status := j.run(ctx, q); status != 0 {
				return &cli.Exit{Code: status}
			}
			return nil
		},
	}
	t.NodeFlags(cmd)
	t.GuardFlag(cmd, " (default: the set's)")
	jsonFlag(cmd, &j.json)
	cmd.Flags().BoolVar(&j.all, "all", false,
		"require every node to be ready, even if fewer are enough for the next restart")
	cmd.Flags().BoolVar(&j.wait, "wait", false, "wait until it is safe to restart the next node")
	cmd.Flags().DurationVar(&j.timeout, "timeout", 10*time.Minute, "the longest time to wait with --wait")
	return cmd
}

// checkJob is one call of "quorate check".
type checkJob struct {
	all     bool
	wait    bool
	json    bool
	timeout time.Duration
	out     io.Writer
	errs    io.Writer
}

// How often the nodes are asked while the command waits, and how often it says
// so though nothing has changed.
const (
	askEvery = 250 * time.Millisecond
	sayEvery = 10 * time.Second
)

// breaks is how long too few nodes must have been ready for the check to say
// that nothing can be locked. On a busy machine an answer may be late.
const breaks = time.Second

// Exit statuses of "quorate check", as monitoring programs understand them:
// fine, degraded, broken.
const (
	exitDegraded = 1
	exitBroken   = 2
)

// run asks the nodes once, or until one more may be restarted, and returns the
// exit status. It waits for timeout at most, and until ctx ends. Each question
// is bounded, too.
func (j *checkJob) run(ctx context.Context, q *quorate.Quorum) int {
	limit := cli.Patience
	if j.wait {
		limit = j.timeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	said, at, began := "", time.Time{}, time.Now()
	var r quorate.Report
	for {
		now, err := q.Check(ctx)
		if r.Nodes == nil || ctx.Err() == nil {
			r = now // else its questions were cut short
		}
		switch {
		case j.wait && err == nil && j.safe(r), !j.wait && (r.Ready >= r.Quorum || time.Since(began) >= breaks):
			return j.tell(r)
		case !j.wait:
			time.Sleep(askEvery / 4)
			continue
		}
		if what := waitsFor(r); what != said || time.Since(at) >= sayEvery {
			fmt.Fprintf(j.errs, "quorate: waiting: %s\n", tellWaits(r))
			said, at = what, time.Now()
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			status := j.tell(r)
			fmt.Fprintf(j.errs, "quorate: %s: %s\n", lo.Ternary(r.MayRestart, "not every node is ready",
				"it is not safe to restart a node"), j.ended(ctx, r.Set))
			return max(status, exitDegraded)
		}
	}
}

// ended says why the wait is over though the nodes are not as they should be,
// and what to do.
func (j *checkJob) ended(ctx context.Context, set quorate.SetReport) string {
	if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
		return cause.Error()
	}
	if set.Note != "" { // without a set, time alone changes nothing
		return fmt.Sprintf("waited for %v; the note in the report says what to do", j.timeout)
	}
	return fmt.Sprintf("waited for %v; start or replace the nodes that are down, or run it again with a longer "+
		"--timeout",
		j.timeout)
}

// safe reports whether the nodes are as the caller wants them.
func (j *checkJob) safe(r quorate.Report) bool {
	for i := range r.Nodes {
		if j.all && state(&r.Nodes[i]) != "ready" {
			return false
		}
	}
	return r.MayRestart
}

// waitsFor names the nodes that are not ready, and why. It stays the same while
// only times and numbers change.
func waitsFor(r quorate.Report) (text string) {
	for i := range r.Nodes {
		switch n := &r.Nodes[i]; {
		case n.Refuses != nil:
			text += n.Node + " " + refusesLocks + ";"
		case n.Err == nil && n.Recovering > 0:
			text += n.Node + " recovers;"
		case n.Err == nil && !n.CaughtUp:
			text += n.Node + " is repaired;"
		case n.Err != nil:
			text += n.Node + " is " + state(n) + ";"
		}
	}
	return text
}

// tellWaits says the same in full.
func tellWaits(r quorate.Report) (text string) {
	r = cli.Clean(r)
	for i := range r.Nodes {
		if s := state(&r.Nodes[i]); s != "ready" {
			if text != "" {
				text += "; "
			}
			text += r.Nodes[i].Node + ": " + s
		}
	}
	return text
}

// tell prints the report, and returns the exit status.
func (j *checkJob) tell(r quorate.Report) int {
	bad := j.report(r)
	switch {
	case r.Ready < r.Quorum:
		return exitBroken
	case !j.safe(r) || bad && !j.wait:
		return exitDegraded
	}
	return 0
}

// report prints the report; see tell.
func (j *checkJob) report(r quorate.Report) (bad bool) {
	if !j.json {
		return tell(j.out, r)
	}
	printJSON(j.out, r)
	return lo.SomeBy(r.Nodes, func(n quorate.NodeReport) bool { return unfit(&n) })
}
