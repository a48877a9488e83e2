package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/child"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// lockJob is one call of "quorate lock" or "quorate sem".
type lockJob struct {
	cli.Target
	name  string
	grip  func(q *quorate.Quorum, name string) grip
	argv  []string
	wait  time.Duration // negative: forever
	grace time.Duration
	errs  io.Writer

	passNodes bool     // the command gets QUORATE_NODES
	env       []string // what else it gets
	note      string   // shown with the claim
}

func lockCommand() *cobra.Command {
	var j lockJob
	var shared, exclusive bool
	cmd := &cobra.Command{
		Use: "lock NAME [flags] -- CMD [ARG...]", SuggestFor: []string{"run", "with", "acquire", "flock"},
		Short: "Run a command while holding a lock",
		Long: `Waits for the lock NAME, runs CMD while holding it, and releases it.

A plain lock is the mutex.Mutex of that name and excludes other Redlock clients.
With --shared or --exclusive, it is a read or write lock on the rwmutex.RWMutex of
that name: any number of processes can share it, or one can hold it alone. All
users of a name must use the same kind.

The command gets its fencing token in QUORATE_TOKEN. Each holder's token is higher
than the last one's. The command doesn't see QUORATE_NODES, which may contain
passwords, unless you pass --pass-nodes. If the lock is lost while the command is
running, it and its children get SIGTERM, and SIGKILL after --grace. If quorate is
killed, they get SIGKILL immediately.

` + signalHelp + `

Exit status: the command's own, or 128+n if signal n ended it; 75 if another
client held the lock or was ahead for all of --wait; 69 if too few nodes could
be asked; 70 if the lock was lost; 64 if the command line is wrong; 126 or 127
if the command cannot be run or was not found.`,
		Example: `  quorate lock nightly -- ./report.sh
  quorate lock nightly --wait 0 -- ./report.sh     # only if it is not running elsewhere`,
		Args: cli.CommandArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch j.grip = newMutexGrip; {
			case shared && exclusive:
				return cli.NewExit(cli.ExitUsage, errors.New("pass either --shared or --exclusive, not both"))
			case shared:
				j.grip = newReadGrip
			case exclusive:
				j.grip = newWriteGrip
			}
			return j.start(cmd, args)
		},
	}
	j.flags(cmd)
	cmd.Flags().BoolVar(&shared, "shared", false, "share the lock with other --shared holders")
	cmd.Flags().BoolVar(&exclusive, "exclusive", false, "hold the lock alone, excluding all --shared holders")
	return cmd
}

func semCommand() *cobra.Command {
	var j lockJob
	var permits, weight int64
	cmd := &cobra.Command{
		Use: "sem NAME -n PERMITS [flags] -- CMD [ARG...]", SuggestFor: []string{"semaphore"},
		Short: "Run a command while holding permits of a semaphore",
		Long: `Waits until --weight of the semaphore NAME's PERMITS are free and no other waiter
is ahead, runs CMD while holding them, and releases them. All users of the name
must pass the same -n.

` + signalHelp + `

The token, lost permits and the exit status work as in "quorate lock".`,
		Example: `  quorate sem encoders -n 3 -- ./encode.sh film.mkv`,
		Args:    cli.CommandArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			j.grip = func(q *quorate.Quorum, name string) grip { return newSemGrip(q, name, permits, weight) }
			return j.start(cmd, args)
		},
	}
	cmd.Flags().Int64VarP(&permits, "permits", "n", 0, "the total number of permits")
	cmd.Flags().Int64Var(&weight, "weight", 1, "the number of permits the command needs")
	j.flags(cmd)
	_ = cmd.MarkFlagRequired("permits")
	return cmd
}

func (j *lockJob) flags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&j.wait, "wait", -1,
		"how long to wait for the lock; 0 tries once (default: forever)")
	cmd.Flags().Lookup("wait").DefValue = "0s" // hides the -1, which the command line must not give
	cmd.Flags().DurationVar(&j.grace, "grace", 2*time.Second,
		"time between SIGTERM and SIGKILL when the lock is lost")
	j.commandFlags(cmd)
}

// commandFlags are for every verb that runs a command.
func (j *lockJob) commandFlags(cmd *cobra.Command) {
	j.NodeFlags(cmd)
	j.GuardFlag(cmd, " (default: the set's)")
	j.LeaseFlags(cmd)
	cmd.Flags().StringVar(&j.note, "note", "",
		"note on the lock in \"quorate inspect\", such as the ID of a request; at most 200 bytes, no secrets")
	cmd.Flags().BoolVarP(&j.Quiet, "quiet", "q", false, "print nothing to standard error except why it failed")
	cmd.Flags().BoolVar(&j.passNodes, "pass-nodes", false,
		"keep $QUORATE_NODES, with its passwords, in the command's environment")
}

// start checks what the flags say and runs the job.
func (j *lockJob) start(cmd *cobra.Command, args []string) error {
	if cmd.Flags().Changed("wait") && j.wait < 0 {
		return cli.NewExit(cli.ExitUsage, fmt.Errorf("--wait %v: cannot be negative; leave it out to wait forever",
			j.wait))
	}
	if j.grace < 0 {
		return cli.NewExit(cli.ExitUsage, fmt.Errorf("--grace %v: cannot be negative; 0 kills at once", j.grace))
	}
	j.name, j.argv, j.errs = args[0], args[1:], cmd.ErrOrStderr()
	return j.run(quorate.WithNote(cmd.Context(), j.note))
}

// tryPatience is what --wait 0 allows for connecting and for the answers.
const tryPatience = 2 * time.Second

// run locks, runs the command, and unlocks.
func (j *lockJob) run(ctx context.Context) error {
	sigs := make(chan os.Signal, 8)
	notify(sigs, ending...)
	defer signal.Stop(sigs)

	q, g, err := j.lock(ctx, sigs)
	if err != nil {
		return err
	}
	defer cli.End(q)
	told, status := j.hold(g.lease(), sigs)

	// On a context of its own: whatever ended the command must not keep the
	// lock.
	switch err := g.release(context.WithoutCancel(ctx)); {
	case errors.Is(err, quorate.ErrLost) && told:
		return &cli.Exit{Code: cli.ExitLost}
	case errors.Is(err, quorate.ErrLost):
		return cli.NewExit(cli.ExitLost, fmt.Errorf("the lock %q was lost as the command ended", j.name))
	case err != nil:
		fmt.Fprintf(j.Notes(j.errs), "quorate: %q is released, but not every node has confirmed it: %v\n", j.name,
			cli.Plain(err))
	}
	return status
}

// signalHelp is the part of the help of each command that runs another one.
const signalHelp = `INT, TERM, HUP and QUIT go to CMD and its children, or end the wait if CMD is
not running. USR1, USR2, WINCH, ALRM, VTALRM, XCPU, XFSZ, IO, PWR and real-time
signals go to CMD only. Ctrl-Z, fg and bg work as usual. A signal that was
ignored at the start, for example by nohup, stays ignored.`

// ending are the signals that end a command.
var ending = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// notify has signals sent to a channel. One that this process was started to
// ignore, as by nohup, stays ignored, here and by the command.
func notify(to chan<- os.Signal, signals ...os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(to, s)
		}
	}
}

// lock connects and locks within --wait, unless a signal comes.
func (j *lockJob) lock(ctx context.Context, sigs <-chan os.Signal) (q *quorate.Quorum, g grip, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case s := <-sigs:
			cancel(&interrupted{s})
		case <-ctx.Done():
		}
	}()
	q, g, err = j.locked(ctx)
	// From here on signals are the command's; one that came just before still
	// ends it all.
	cancel(nil)
	<-watched
	if i, ok := errors.AsType[*interrupted](context.Cause(ctx)); ok {
		if q != nil {
			cli.End(q)
		}
		return nil, nil, &cli.Exit{Code: child.SignalStatus(i.Signal)}
	}
	return q, g, err
}

func (j *lockJob) locked(ctx context.Context) (*quorate.Quorum, grip, error) {
	if j.wait >= 0 {
		limit := j.wait
		if limit == 0 {
			limit = tryPatience
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	q, err := j.Connect(ctx, j.errs)
	if err != nil {
		return nil, nil, j.refused(nil, err)
	}
	g := j.grip(q, j.name)
	if err := g.take(ctx, j.wait == 0); err != nil {
		err = j.refused(g, err)
		cli.End(q)
		return nil, nil, err
	}
	return q, g, nil
}

// interrupted is a signal that came while the lock was being waited for.
type interrupted struct{ os.Signal }

func (i *interrupted) Error() string { return "interrupted: " + i.String() }

// refused says why the lock could not be acquired, with the status for that.
func (j *lockJob) refused(g grip, err error) error {
	if e, ok := errors.AsType[*cli.Exit](err); ok {
		return e
	}
	switch {
	case errors.Is(err, quorate.ErrInvalid):
		return cli.NewExit(cli.ExitUsage, cli.Plain(err))
	case g != nil && errors.Is(err, quorate.ErrHeld):
		return cli.NewExit(cli.ExitHeld, errors.New(g.holder(j.name)))
	}
	if errors.Is(err, quorate.ErrHeld) {
		return cli.NewExit(cli.ExitHeld, cli.Plain(err))
	}
	return cli.NewExit(cli.ExitNoQuorum, cli.Plain(err))
}

// lostText says in one line that a lock is lost, and why.
func lostText(name string, lease quorate.Lease) string {
	text := fmt.Sprintf("the lock %q (token %d) is lost", name, lease.Token())
	if cause := context.Cause(lease.Context()); cause != nil {
		text += ": " + cli.Plain(cause).Error()
	}
	return text
}

// hold runs the command for as long as the lease holds. It returns how the
// command ended, and whether it has reported a loss to the user.
func (j *lockJob) hold(lease quorate.Lease, sigs <-chan os.Signal) (told bool, ended error) {
	// On Linux the child dies with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.Command(j.argv[0], j.argv[1:]...)
	cmd.Env = append(os.Environ(), "QUORATE_TOKEN="+strconv.FormatUint(lease.Token(), 10))
	cmd.Env = append(cmd.Env, j.env...)
	if !j.passNodes {
		cmd.Env = cli.WithoutNodes(cmd.Env)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	c, err := child.StartChild(cmd, func() bool { return time.Now().Before(lease.ValidUntil()) })
	if err != nil {
		return false, cli.CannotRun(err)
	}
	defer c.Dismiss()
	passed := make(chan os.Signal, 64)
	notify(passed, child.Passed()...)
	defer signal.Stop(passed)
	lost := lease.Context().Done()
	var kill <-chan time.Time
	for {
		select {
		case status := <-c.Done:
			if kill != nil {
				c.Finish(kill)
			}
			if status != 0 {
				return lost == nil, &cli.Exit{Code: status}
			}
			return lost == nil, nil
		case s := <-sigs:
			c.Signal(s)
		case s := <-passed:
			c.Pass(s)
		case <-lost:
			lost = nil
			fmt.Fprintf(j.errs, "quorate: %s; ending the command\n", lostText(j.name, lease))
			c.Terminate()
			kill = time.After(j.grace)
		case <-kill:
			c.Kill()
			kill = nil
		}
	}
}
