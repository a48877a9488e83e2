package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/child"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/leader"
)

// leaderJob is one call of "quorate leader".
type leaderJob struct {
	lockJob
	id, value string
	priority  int
	again     bool
	who       bool
	json      bool
	watch     bool
	out       io.Writer
}

func leaderCommand() *cobra.Command {
	j := leaderJob{lockJob: lockJob{wait: -1}}
	cmd := &cobra.Command{
		Use:   "leader NAME [flags] -- CMD [ARG...]",
		Short: "Run a command on one machine of the fleet at a time",
		Long: `Waits to become the leader of NAME, and runs CMD while it is. Start the same line
on every machine: one runs the command, and the others wait in line. When the
command ends, the leader resigns, and the next in line runs it right away.

If the leadership is lost while the command is running, the command and its
children get SIGTERM, and SIGKILL after --grace. Then quorate exits with 70 or,
with --again, queues again.

The command gets its term in QUORATE_TOKEN. Each leader's term is higher than the
last one's.

` + signalHelp + `

--who prints the leader; with --json, as a JSON document. --watch prints the
leader and each change until interrupted.

Exit status: the command's own, or 128+n if signal n ended it; 69 if too few
nodes could be asked; 70 if the leadership was lost; 64 if the command line is
wrong; 126 or 127 if the command cannot be run or was not found. With --who: 0
if there is a leader; 1 if there is none; 69 if too few nodes could be asked.`,
		Example: `  quorate leader scheduler -- ./scheduler
  quorate leader scheduler --value http://10.0.0.7:8080 -- ./scheduler
  quorate leader scheduler --who`,
		Args: func(cmd *cobra.Command, args []string) error {
			return cli.NameOrCommand(cmd, args, "--who", j.who, "--watch", j.watch)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			j.out, j.errs, j.name = cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0]
			switch {
			case j.json && !j.who:
				return cli.NewExit(cli.ExitUsage, errors.New("--json needs --who"))
			case j.who:
				return j.tellWho(cmd.Context())
			case j.watch:
				return j.tellChanges(cmd.Context())
			}
			return j.lead(cmd, args)
		},
	}
	cmd.Flags().DurationVar(&j.grace, "grace", 2*time.Second,
		"time between SIGTERM and SIGKILL when the leadership is lost")
	j.commandFlags(cmd)
	cmd.Flags().StringVar(&j.id, "id", "", "the leader's id (default: host, process and a random suffix)")
	cmd.Flags().IntVar(&j.priority, "priority", 0,
		"its priority when a leader hands over: the waiting process with the highest one leads next (give it to "+
			"all)")
	cmd.Flags().StringVar(&j.value, "value", "", "a value to publish with the leader, such as its address")
	cmd.Flags().BoolVar(&j.again, "again", false, "queue again after the leadership is lost")
	cmd.Flags().BoolVar(&j.who, "who", false, "print the leader")
	jsonFlag(cmd, &j.json)
	cmd.Flags().BoolVar(&j.watch, "watch", false, "print the leader and each change")
	return cmd
}

// lead runs the command as a leader, and again after a loss if told to.
func (j *leaderJob) lead(cmd *cobra.Command, args []string) error {
	// Between two terms there is no command to pass a signal on to; and one
	// that came as the command was being ended has reached that, and is meant
	// for us as well.
	stop := make(chan os.Signal, 1)
	notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(stop)
	for {
		var g *leaderGrip
		j.grip = func(q *quorate.Quorum, name string) grip {
			opts := []quorate.LeaderOption{leader.WithID(j.id)}
			if cmd.Flags().Changed("priority") {
				opts = append(opts, leader.WithPriority(j.priority))
			}
			g = &leaderGrip{e: leader.New(q, name, opts...), value: j.value}
			return g
		}
		err := j.start(cmd, args)
		if !j.again || g == nil || !g.lost {
			return err
		}
		select {
		case s := <-stop:
			return &cli.Exit{Code: child.SignalStatus(s)}
		default:
		}
	}
}

// leaderGrip is a leadership.
type leaderGrip struct {
	e     *leader.Election
	value string
	lost  bool
}

func (g *leaderGrip) take(ctx context.Context, _ bool) error { return g.e.Campaign(ctx, g.value) }
func (g *leaderGrip) lease() quorate.Lease                   { return g.e.Lease() }

func (g *leaderGrip) release(ctx context.Context) error {
	err := g.e.Resign(ctx)
	g.lost = errors.Is(err, quorate.ErrLost)
	return err
}

func (g *leaderGrip) holder(name string) string {
	return fmt.Sprintf("another process is the leader of %q, or is ahead in the queue", name)
}

// tellWho prints the leader.
func (j *leaderJob) tellWho(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cli.Patience)
	defer cancel()
	q, err := j.Connect(ctx, j.errs)
	if err != nil {
		return j.refused(nil, err)
	}
	defer cli.End(q)
	l, err := leader.New(q, j.name).Leader(ctx)
	switch {
	case errors.Is(err, leader.ErrNoLeader):
		return cli.NewExit(1, fmt.Errorf("%q has no leader", j.name))
	case err != nil:
		return j.refused(nil, err)
	}
	if j.json {
		printJSON(j.out, l)
		return nil
	}
	fmt.Fprintln(j.out, describe(l))
	return nil
}

// tellChanges prints the leader and each change until a signal comes.
func (j *leaderJob) tellChanges(ctx context.Context) error {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	q, err := j.Connect(ctx, j.errs)
	switch {
	case ctx.Err() != nil:
		if q != nil {
			cli.End(q)
		}
		return nil
	case err != nil:
		return j.refused(nil, err)
	}
	defer cli.End(q)
	for l, err := range leader.New(q, j.name).Observe(ctx) {
		switch {
		case errors.Is(err, quorate.ErrInvalid):
			return j.refused(nil, err)
		case errors.Is(err, leader.ErrNoLeader):
			fmt.Fprintln(j.out, "no leader")
		case err != nil:
			fmt.Fprintln(j.out, "unknown:", cli.Plain(err))
		default:
			fmt.Fprintln(j.out, describe(l))
		}
	}
	return nil
}

// describe is a leader in one line.
func describe(l leader.Leader) string {
	s := fmt.Sprintf("%q is the leader, term %d, since %s, process %d on %s",
		l.ID, l.Term, l.Since.UTC().Format(time.RFC3339), l.PID, l.Host)
	if l.Value != "" {
		s += ", value " + strconv.Quote(l.Value)
	}
	return s
}
