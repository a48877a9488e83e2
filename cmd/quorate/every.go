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
	"github.com/quorate/quorate/period"
)

// everyJob is one call of "quorate every".
type everyJob struct {
	lockJob
	times  times
	retry  bool
	ifDue  bool
	status bool
	json   bool
	out    io.Writer
}

func everyCommand() *cobra.Command {
	var j everyJob
	cmd := &cobra.Command{
		Use: "every NAME PERIOD [flags] -- CMD [ARG...]", SuggestFor: []string{"cron", "period", "schedule"},
		Short: "Run a command once per period, on one replica",
		Long: `Runs CMD once per PERIOD, on one replica, until a signal stops it. Start the same
line on every replica.

PERIOD is a length (10s, 15m, 24h) or the five fields of a crontab line in quotes
('0 2 * * 1-5', @daily). Periods follow the nodes' clocks. If PERIOD is a length,
periods start at multiples of it since 1970-01-01 00:00 UTC, and the command may
start at any time within its period. --offset makes every period start later.

A crontab line is in UTC unless you pass --zone. When the clocks go forward and
skip a scheduled time, the command runs at the moment of the change. When they go
back and a scheduled time occurs twice, it runs only the first time, unless the
line also fires in the hour before and in the hour after. If no replica is up
within 5 minutes of a scheduled time, that run is skipped. With --catch-up, the
last missed run is made up for before the next one.

If a run takes longer than its period, no other run starts until it ends. If a run
fails or its machine dies, it isn't repeated in that period unless you pass
--retry.

With --if-due, quorate runs CMD unless this period has already had a run, then
exits. Use this from cron or a systemd timer on every host. If the next period
starts within the skew (2s by default), quorate waits for it. If too few nodes
answer, it gives up after --wait.

The command gets its fencing token in QUORATE_TOKEN and the start of its period in
QUORATE_PERIOD (RFC 3339, UTC). If the lock is lost while the command is running,
it and its children get SIGTERM, and SIGKILL after --grace.

` + signalHelp + `
After any of the first four, quorate doesn't wait for another period.

--status prints the latest run; with --json, as a JSON document.

Exit status: 128+n if signal n ended it; 69 if too few nodes could be asked at
the start; 64 if the command line is wrong; 126 or 127 if the command cannot be
run or was not found. With --if-due: the command's own status if it ran here; 0
if this period has already had its run or one is in progress; 69 if too few nodes
could be asked within --wait; 70 if the lock was lost. With --status: 0 if there was a run,
1 if not.`,
		Example: `  quorate every report 1h -- ./report.sh
  quorate every backup '0 2 * * *' --zone Europe/Berlin --catch-up -- ./backup.sh
  quorate every report 1h --if-due -q -- ./report.sh   # in every host's crontab
  quorate every backup 24h --status`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case !j.status:
				return cli.WantCommand(cmd, args, "NAME", "PERIOD")
			case len(args) != 2 || cmd.ArgsLenAtDash() >= 0:
				return errors.New("every: --status takes a name and a period, but no command: quorate every NAME PERIOD " +
					"--status")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if j.times, err = j.times.parse(args[0], args[1]); err != nil {
				return cli.NewExit(cli.ExitUsage, err)
			}
			switch {
			case j.grace < 0:
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("--grace %v: cannot be negative; 0 kills at once", j.grace))
			case j.json && !j.status:
				return cli.NewExit(cli.ExitUsage, errors.New("--json needs --status"))
			case cmd.Flags().Changed("wait") && !j.ifDue:
				return cli.NewExit(cli.ExitUsage,
					errors.New("--wait needs --if-due: without it, quorate waits until a signal ends it"))
			case j.ifDue && j.wait <= 0:
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("--wait %v: must be positive, such as 30s", j.wait))
			}
			j.name, j.argv, j.out, j.errs = args[0], args[2:], cmd.OutOrStdout(), cmd.ErrOrStderr()
			return j.start(quorate.WithNote(cmd.Context(), j.note))
		},
	}
	cmd.Flags().DurationVar(&j.grace, "grace", 2*time.Second,
		"time between SIGTERM and SIGKILL when the lock is lost")
	j.commandFlags(cmd)
	cmd.Flags().BoolVar(&j.retry, "retry", false,
		"if a run fails or its machine dies, repeat it within its period, after a tenth of the period or a "+
			"minute, whichever is less")
	cmd.Flags().BoolVar(&j.status, "status", false, "print when the latest run was and how it ended")
	jsonFlag(cmd, &j.json)
	cmd.Flags().BoolVar(&j.ifDue, "if-due", false,
		"run the command unless this period has already had a run, then exit")
	cmd.Flags().DurationVar(&j.wait, "wait", time.Minute, "with --if-due, how long to wait for the nodes")
	j.times.flags(cmd)
	return cmd
}

// start runs the command in each period until a signal comes. A signal ends the
// waiting, and a command that runs gets it.
func (j *everyJob) start(ctx context.Context) error {
	sigs, passed := make(chan os.Signal, 8), make(chan os.Signal, 8)
	notify(sigs, ending...)
	ctx, cancel := context.WithCancelCause(ctx)
	heeded := make(chan struct{})
	go func() {
		defer close(heeded)
		for s := range sigs {
			cancel(&interrupted{s}) // the first one counts
			select {
			case passed <- s:
			default: // the command has had seven
			}
		}
	}()
	defer func() {
		signal.Stop(sigs) // nothing is sent from here on
		close(sigs)
		<-heeded
		cancel(nil)
	}()
	connecting := ctx
	if j.status || j.ifDue {
		within := cli.Patience
		if j.ifDue {
			within = j.wait
		}
		var cancel context.CancelFunc
		connecting, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	q, err := j.Connect(connecting, j.errs)
	if err != nil {
		return j.ended(ctx, err)
	}
	defer cli.End(q)
	var opts []quorate.PeriodOption
	if j.retry {
		opts = append(opts, period.WithRetry())
	}
	p := j.times.period(q, j.name, opts)
	switch {
	case j.status:
		return j.tell(ctx, p)
	case j.ifDue:
		return j.once(ctx, connecting, p, passed)
	}
	for {
		if err := p.Wait(ctx); err != nil {
			return j.ended(ctx, err)
		}
		if err := j.do(ctx, p, passed); err != nil {
			return err
		}
	}
}

// once runs the command if this period has had no run, for as long as it takes.
// Before it runs, ctx ends with waiting.
func (j *everyJob) once(ctx, waiting context.Context, p *period.Period, sigs <-chan os.Signal) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	relax := context.AfterFunc(waiting, func() { cancel(context.Cause(waiting)) })
	defer relax()
	told := false
	ran, err := p.Do(ctx, func(ctx context.Context) (status error) {
		if !relax() {
			return cli.NewExit(cli.ExitNoQuorum, fmt.Errorf("%q: the lock came too late", j.name))
		}
		told, status = j.command(ctx, sigs)
		return status
	})
	e, ended := errors.AsType[*cli.Exit](err)
	switch {
	case told:
		return &cli.Exit{Code: cli.ExitLost} // whatever a command makes of being ended
	case ended:
		return e
	case ran && err != nil:
		return cli.NewExit(cli.ExitLost, cli.Plain(err))
	case err != nil:
		return j.ended(ctx, err)
	case !ran:
		fmt.Fprintf(j.Notes(j.errs),
			"quorate: %q is not due: this period has already had its run, or a run is in progress\n", j.name)
	}
	return nil
}

// command runs the command under the lease of a run.
func (j *everyJob) command(ctx context.Context, sigs <-chan os.Signal) (told bool, status error) {
	j.env = []string{"QUORATE_PERIOD=" + period.Start(ctx).Format(time.RFC3339Nano)}
	return j.hold(period.Lease(ctx), sigs)
}

// do runs the command unless this period has had its run. It returns an error
// only if that would be the same in the next period.
func (j *everyJob) do(ctx context.Context, p *period.Period, sigs <-chan os.Signal) error {
	ran, err := p.Do(ctx, func(ctx context.Context) error {
		_, status := j.command(ctx, sigs)
		return status
	})
	e, ended := errors.AsType[*cli.Exit](err)
	switch {
	case err == nil:
		return nil
	case ended && e.Err != nil: // it did not begin
		return e
	case ended && ctx.Err() == nil:
		fmt.Fprintf(j.errs, "quorate: %q: the command ended with status %d\n", j.name, e.Code)
	case errors.Is(err, quorate.ErrInvalid):
		return j.ended(ctx, err)
	case !ran && ctx.Err() == nil:
		fmt.Fprintf(j.errs, "quorate: did not run %q in this period: %v\n", j.name, cli.Plain(err))
	}
	return nil
}

// ended is the exit status for what has ended the waiting.
func (j *everyJob) ended(ctx context.Context, err error) error {
	if i, ok := errors.AsType[*interrupted](context.Cause(ctx)); ok {
		return &cli.Exit{Code: child.SignalStatus(i.Signal)}
	}
	return j.refused(nil, err)
}

// tell prints what the newest run is.
func (j *everyJob) tell(ctx context.Context, p *period.Period) error {
	ctx, cancel := context.WithTimeout(ctx, toTell)
	defer cancel()
	last, err := p.Last(ctx)
	if err != nil {
		return j.ended(ctx, err)
	}
	if j.json {
		printJSON(j.out, last)
	}
	start := last.Start.Local().Format("2006-01-02 15:04:05")
	switch {
	case j.json:
	case last.Start.IsZero():
		fmt.Fprintf(j.out, "%q has not run yet\n", j.name)
	case last.State == period.Began && last.Left > 0:
		fmt.Fprintf(j.out, "%q is running in the period from %s (token %d)\n", j.name, start, last.Token)
	case last.State == period.Began:
		fmt.Fprintf(j.out, "%q began in the period from %s, but its end is not recorded (token %d)\n", j.name,
			start, last.Token)
	default:
		fmt.Fprintf(j.out, "%q is %s in the period from %s (token %d)\n", j.name, last.State, start, last.Token)
	}
	if last.Start.IsZero() {
		return &cli.Exit{Code: 1}
	}
	return nil
}
