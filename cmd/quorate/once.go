package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/child"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/once"
)

// onceJob is one call of "quorate once".
type onceJob struct {
	lockJob
	keep          time.Duration
	durable       bool
	status, reset bool
	json          bool
	out           io.Writer

	ctx    context.Context // ends with the patience: --wait, or a signal
	cancel context.CancelCauseFunc
	sigs   chan os.Signal
	timer  *time.Timer // of --wait; nil: forever
	ran    bool        // the command was started here
}

func onceCommand() *cobra.Command {
	var j onceJob
	cmd := &cobra.Command{
		Use:   "once NAME [flags] -- CMD [ARG...]",
		Short: "Run a command once for all replicas, and wait until it is done",
		Long: `Runs CMD unless the work NAME is already done, and returns when it is done. Start
the same line on every replica: one runs the command, and the others wait for it
and continue. Once done, the work stays done for all later calls.

The work is done when the command has exited with 0 and a majority of the nodes
has recorded that. If the command fails, or its machine dies, the next replica
runs it. So it may start more than once: make it safe to run again, and make sure
it doesn't exit with 0 if it was interrupted.

The command gets its fencing token in QUORATE_TOKEN. Each run's token is higher
than the last one's. If the lock is lost while the command is running, it and its
children get SIGTERM, and SIGKILL after --grace.

` + signalHelp + `

--status prints whether the work is done, when, and by which process; with
--json, as a JSON document. --reset marks the work as not done. Processes that
already know that it is done are not affected.

Exit status: 0 when the work is done, here or elsewhere; if the command ran here
and failed, its own, or 128+n if signal n ended it; 75 if another client was
running it for all of --wait; 69 if too few nodes could be asked, or with
--durable write to disk; 70 if the lock was lost, or the command succeeded but
that could not be recorded; 64 if the command line is wrong; 126 or 127 if the
command cannot be run or was not found. With --status: 0 if the work is done; 1
if not; 69 if too few nodes could be asked.`,
		Example: `  quorate once migrate-v7 -- ./migrate
  quorate once report-$(date +%F) --keep 48h -- ./report.sh
  quorate once migrate-v7 --status`,
		Args: func(cmd *cobra.Command, args []string) error {
			return cli.NameOrCommand(cmd, args, "--status", j.status, "--reset", j.reset)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			least := max(5*time.Minute, j.Guard)
			switch {
			case cmd.Flags().Changed("wait") && j.wait < 0:
				return cli.NewExit(cli.ExitUsage,
					fmt.Errorf("--wait %v: cannot be negative; leave it out to wait forever", j.wait))
			case j.grace < 0:
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("--grace %v: cannot be negative; 0 kills at once", j.grace))
			case j.json && !j.status:
				return cli.NewExit(cli.ExitUsage, errors.New("--json needs --status"))
			case j.keep%time.Millisecond != 0:
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("--keep %v: must be a whole number of milliseconds", j.keep))
			case j.keep != 0 && j.keep < least:
				return cli.NewExit(cli.ExitUsage,
					fmt.Errorf("--keep %v: must be at least %v; leave it out to keep it forever", j.keep, least))
			}
			j.name, j.argv, j.out, j.errs = args[0], args[1:], cmd.OutOrStdout(), cmd.ErrOrStderr()
			return j.start(quorate.WithNote(cmd.Context(), j.note))
		},
	}
	cmd.Flags().DurationVar(&j.wait, "wait", -1,
		"how long to wait until the work is done or can be started here; 0 tries once (default: forever)")
	cmd.Flags().Lookup("wait").DefValue = "0s" // hides the -1, which the command line must not give
	cmd.Flags().DurationVar(&j.grace, "grace", 2*time.Second,
		"time between SIGTERM and SIGKILL when the lock is lost")
	j.commandFlags(cmd)
	cmd.Flags().DurationVar(&j.keep, "keep", 0, "how long the work stays done (default: forever)")
	cmd.Flags().Lookup("keep").DefValue = "0s"
	cmd.Flags().BoolVar(&j.durable, "durable", false,
		"don't run unless a majority of the nodes keeps an append-only file")
	cmd.Flags().BoolVar(&j.status, "status", false, "print whether the work is done, when, and by which process")
	jsonFlag(cmd, &j.json)
	cmd.Flags().BoolVar(&j.reset, "reset", false, "mark the work as not done")
	return cmd
}

// start connects, and does what is asked for, within --wait and unless a signal
// comes.
func (j *onceJob) start(ctx context.Context) error {
	j.sigs = make(chan os.Signal, 8)
	notify(j.sigs, ending...)
	defer signal.Stop(j.sigs)
	j.ctx, j.cancel = context.WithCancelCause(ctx)
	defer j.cancel(nil)
	if j.status && j.wait < 0 {
		j.wait = cli.Patience
	}
	if j.wait >= 0 {
		j.timer = time.AfterFunc(j.patience(), func() { j.cancel(nil) })
		defer j.timer.Stop()
	}

	relax := j.heed()
	defer func() { relax() }()
	q, err := j.Connect(j.ctx, j.errs)
	if err != nil {
		return j.missed(nil, err)
	}
	defer cli.End(q)
	opts := []quorate.OnceOption{once.KeepFor(j.keep)}
	if j.durable {
		opts = append(opts, once.WithDurable())
	}
	o := once.New(q, j.name, opts...)
	switch {
	case j.status:
		return j.tell(o)
	case j.reset:
		if err := o.Reset(j.ctx); err != nil {
			return j.missed(o, err)
		}
		fmt.Fprintf(j.out, "%q is marked as not done; the next call runs it.\n", j.name)
		return nil
	case j.wait == 0:
		if s, err := o.Status(j.ctx); err == nil && s.State == once.Running {
			return cli.NewExit(cli.ExitHeld, errors.New(describeOnce(j.name, s)))
		}
	}
	return j.verdict(o, o.DoContext(j.ctx, func(ctx context.Context) error {
		relax() // from here on signals are the command's
		if j.timer != nil {
			j.timer.Stop()
		}
		if ctx.Err() != nil {
			return cli.NewExit(cli.ExitHeld, fmt.Errorf("%q: --wait was over before it could start", j.name))
		}
		j.ran = true
		told, status := j.hold(once.Lease(ctx), j.sigs)
		switch {
		case told:
			return &cli.Exit{Code: cli.ExitLost} // whatever a command makes of being ended
		case status != nil:
			return status
		}
		// Recording it is waited for as the turn was.
		relax = j.heed()
		if j.timer != nil {
			j.timer.Reset(j.patience())
		}
		return nil
	}))
}

// patience is how long the nodes, and others, are waited for.
func (j *onceJob) patience() time.Duration {
	if j.wait == 0 {
		return tryPatience
	}
	return j.wait
}

// heed makes a signal end the wait, until the function that it returns is
// called.
func (j *onceJob) heed() (relax func()) {
	enough, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case s := <-j.sigs:
			j.cancel(&interrupted{s})
		case <-enough:
		}
	}()
	return func() {
		if enough != nil {
			close(enough)
			<-over
			enough = nil
		}
	}
}

// toTell bounds how long the command asks which process did the work, or does
// it. Without the answer it says less.
const toTell = 5 * time.Second

// whose asks for the status until enough nodes have answered, for toTell at
// most: Status gives up after two rounds, which a busy machine is too slow for.
func whose(ctx context.Context, o *once.Once) (once.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, toTell)
	defer cancel()
	for {
		s, err := o.Status(ctx)
		if !errors.Is(err, quorate.ErrNoQuorum) || ctx.Err() != nil {
			return s, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond): // where nodes are down, the answer comes at once
		}
	}
}

// verdict is the exit status for how it ended, with what there is to say.
func (j *onceJob) verdict(o *once.Once, err error) error {
	switch {
	case errors.Is(err, once.ErrNotRecorded):
		return cli.NewExit(cli.ExitLost, fmt.Errorf("%q is done here, but may be done again elsewhere: %w", j.name,
			cli.Plain(err)))
	case err == nil && !j.ran:
		s, err := whose(j.ctx, o)
		says := describeOnce(j.name, s)
		if err != nil { // a command that did not run is never silent
			says = fmt.Sprintf("%q was already done; cannot read by which process: %v", j.name, cli.Plain(err))
		}
		fmt.Fprintln(j.Notes(j.errs), "quorate:", says)
		return nil
	case err == nil:
		return nil
	case !j.ran:
		return j.missed(o, err)
	}
	if e, ok := errors.AsType[*cli.Exit](err); ok {
		return e // of the command
	}
	return cli.NewExit(cli.ExitLost, cli.Plain(err))
}

// missed says why it could not be done, with the status for that.
func (j *onceJob) missed(o *once.Once, err error) error {
	if i, ok := errors.AsType[*interrupted](context.Cause(j.ctx)); ok {
		return &cli.Exit{Code: child.SignalStatus(i.Signal)}
	}
	e, ok := errors.AsType[*quorate.Error](err)
	switch {
	case o != nil && errors.Is(err, quorate.ErrHeld):
		return cli.NewExit(cli.ExitHeld, errors.New(j.inTheWay(o)))
	case ok && errors.Is(err, quorate.ErrNoQuorum):
		why := *e
		why.Err = quorate.ErrNoQuorum // that --wait is over goes without saying
		err = &why
	}
	return j.refused(nil, err)
}

// inTheWay describes the process that runs it, if that can be found out.
func (j *onceJob) inTheWay(o *once.Once) string {
	s, err := whose(context.Background(), o)
	if err != nil {
		return cli.Plain(err).Error()
	}
	return describeOnce(j.name, s)
}

// tell prints the state of the work.
func (j *onceJob) tell(o *once.Once) error {
	s, err := o.Status(j.ctx)
	if err != nil {
		return j.missed(nil, err)
	}
	if j.json {
		printJSON(j.out, s)
	} else {
		fmt.Fprintln(j.out, describeOnce(j.name, s))
	}
	if s.State != once.Done {
		return &cli.Exit{Code: 1}
	}
	return nil
}

// describeOnce says in words which process did it, and when.
func describeOnce(name string, s once.Status) string {
	const layout = "2006-01-02 15:04:05"
	when := s.When.Local().Format(layout)
	switch {
	case s.State == once.Running:
		return fmt.Sprintf("%q is being done by process %d on %s, which claimed it at %s (token %d, %d waiting)",
			name, s.PID, s.Host, when, s.Token, s.Waiters)
	case s.State != once.Done:
		return fmt.Sprintf("%q is not done", name)
	case s.Until.IsZero():
		return fmt.Sprintf("%q was done by process %d on %s at %s (token %d)", name, s.PID, s.Host, when, s.Token)
	}
	return fmt.Sprintf("%q was done by process %d on %s at %s (token %d) and stays done until %s", name, s.PID,
		s.Host, when, s.Token, s.Until.Local().Format(layout))
}
