package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/setup"
)

func bootstrapCommand() *cobra.Command {
	var t cli.Target
	j := bootstrapJob{t: &t, said: map[int]bool{}, mute: map[int]time.Time{}}
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Declare brand-new nodes ready, so the first lock does not wait",
		Long: `Declares that no client has ever used these nodes, so they can vote right away
instead of waiting for their guard time. They record the listed nodes as their
set, with --guard, --retention and --skew as the settings that all clients share.

Use it for tests, for CI, and for a first deployment if you don't want to wait.
Production never needs it. Don't run it on every start: if all nodes have lost
their data, they look brand-new, and two processes could then hold the same lock.

A server that started less than a guard time ago may have lost its data. The
command says so and waits until that server has been up for the guard time. If
you have just created the servers, pass --new to skip this wait.

If the nodes have already recorded a set, the command changes nothing.`,
		Example: `  quorate bootstrap        # waits for servers that have just started
  quorate bootstrap --new  # in a test that has just started them`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, done, err := t.Open(cmd.Context(), io.Discard)
			if err != nil {
				return err
			}
			defer done()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			j.out, j.errs = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return j.run(ctx, q)
		},
	}
	t.NodeFlags(cmd)
	t.GuardFlag(cmd, " (default: 20s)")
	t.SharedFlags(cmd, "5m", "2s")
	cmd.Flags().BoolVar(&j.isNew, "new", false,
		"the servers are brand-new: do not wait for servers that have just started")
	return cmd
}

// bootstrapJob is one call of "quorate bootstrap".
type bootstrapJob struct {
	t     *cli.Target
	isNew bool // the user knows that no server has lost its data
	out   io.Writer
	errs  io.Writer

	said map[int]bool      // the servers that a line was printed for
	mute map[int]time.Time // when a server first did not say how long it has been up
}

func (j *bootstrapJob) run(ctx context.Context, q *quorate.Quorum) error {
	known, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := core.CoreOf(q).Onlooker().Recorded(known)
	if err == nil {
		return j.already(c.Addrs())
	}
	answer := true
	if !j.isNew && !errors.Is(err, quorate.ErrInvalid) {
		if answer, err = j.wait(ctx, q); err != nil {
			return cli.NewExit(1, err)
		}
	}
	ctx, cancel = context.WithTimeout(ctx, cli.Patience)
	defer cancel()
	if !answer {
		cancel() // it was waited for, and nobody has looked how old it is: only the reason is asked for
	}
	recorded, err := core.CoreOf(q).Record(ctx)
	if err = core.WrapError("bootstrap", "", err); errors.Is(err, quorate.ErrInvalid) {
		return cli.NewExit(1, cli.Plain(err)) // no node that answers later changes it
	} else if err != nil {
		return cli.NewExit(1,
			fmt.Errorf("%w\nEvery node must confirm: start the nodes named above, or correct their addresses, and "+
				"run this again", cli.Plain(err)))
	}
	r, _ := q.Check(ctx)
	if !recorded { // the nodes have answered since, or another client was first
		return j.already(r.Set.Members)
	}
	fmt.Fprintf(j.out, "Declared %s brand-new; they vote from now on.\n",
		fault.Count(len(r.Set.Members), "node"))
	fmt.Fprintf(j.out, "The set is recorded with a guard time of %v: clients with a TTL above %v are refused.\n",
		r.Set.Guard, r.Set.LongestTTL)
	return nil
}

func (j *bootstrapJob) already(set []string) error {
	fmt.Fprintf(j.out, "Already recorded; nothing changed. The set is %s.\n", strings.Join(set, " "))
	return nil
}

// wait returns when no blank server has been up for less than a guard time. A
// server that restarts meanwhile is waited for again. It reports false if some
// node does not answer.
func (j *bootstrapJob) wait(ctx context.Context, q *quorate.Quorum) (answer bool, err error) {
	for {
		switch state := j.look(ctx, q); state {
		case nodesSilent:
			return false, nil
		case nodesDiffer:
			return true, nil
		}
		rest := j.rest(ctx)
		if rest <= 0 {
			return true, nil
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return true, errors.New("bootstrap: interrupted while waiting; nothing was changed")
		}
	}
}

// nodesState is what bootstrap finds before it declares anything.
type nodesState int

const (
	nodesBlank nodesState = iota // all are, so any of them may have lost its data
	// A node has recorded a set or refuses permanently; Record's error says
	// what is wrong.
	nodesDiffer
	nodesSilent // a node does not answer
)

// look waits for the answers of all nodes, for less than Patience.
func (j *bootstrapJob) look(ctx context.Context, q *quorate.Quorum) nodesState {
	ctx, cancel := context.WithTimeout(ctx, cli.Patience/2)
	defer cancel()
	for {
		r, _ := q.Check(ctx)
		if state := judge(r); state != nodesSilent {
			return state
		}
		select {
		case <-time.After(askEvery / 4):
		case <-ctx.Done():
			return nodesSilent
		}
	}
}

func judge(r quorate.Report) nodesState {
	state := nodesBlank
	if r.Set.Recorded {
		return nodesDiffer
	}
	for i := range r.Nodes {
		switch n := &r.Nodes[i]; {
		case n.Err != nil && fault.Permanent(n.Err):
			return nodesDiffer
		case n.Membership == quorate.NodeUnknown || n.Err != nil && !fault.IsVerdict(n.Err):
			state = nodesSilent
		case n.Membership != quorate.NodeBlank && n.Membership != quorate.NodeAccepted:
			return nodesDiffer
		}
	}
	return state
}

// rest is how long to wait until each server has been up for the guard time. It
// prints a line for each that has not.
func (j *bootstrapJob) rest(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, cli.Patience)
	defer cancel()
	guard := cmp.Or(j.t.Guard, setup.Defaults().Guard)
	ups, errs := make([]time.Duration, len(j.t.Clients)), make([]error, len(j.t.Clients))
	var all sync.WaitGroup
	for i, c := range j.t.Clients {
		all.Go(func() { ups[i], errs[i] = uptime(ctx, c) })
	}
	all.Wait()
	longest := time.Duration(0)
	for i, up := range ups {
		why := fmt.Sprintf("started %v ago, so it may have lost its data", up)
		if errs[i] != nil {
			if j.mute[i].IsZero() {
				j.mute[i] = time.Now()
			}
			up = time.Since(j.mute[i])
			why = "does not report its uptime, so it may have just lost its data"
		}
		left := guard - up
		if left > 0 && !j.said[i] {
			j.said[i] = true
			fmt.Fprintf(j.errs,
				"quorate: %s %s: waiting %v for the rest of the guard time. If no client has ever used it, pass --new\n",
				j.t.Names[i], why, left.Round(time.Second))
		}
		longest = max(longest, left)
	}
	return longest
}

// uptime asks a server how long it has been up, and all masters of a cluster,
// for the youngest. The server's number is the difference of two times in whole
// seconds, so it may be too large by one: a second less is returned.
func uptime(ctx context.Context, c redis.UniversalClient) (time.Duration, error) {
	one := func(ctx context.Context, c redis.Cmdable) (time.Duration, error) {
		info := c.InfoMap(ctx, "server")
		if err := info.Err(); err != nil {
			return 0, err
		}
		seconds, err := strconv.Atoi(info.Item("Server", "uptime_in_seconds"))
		return max(0, time.Duration(seconds-1)*time.Second), err
	}
	cluster, is := c.(*redis.ClusterClient)
	if !is {
		return one(ctx, c)
	}
	var mu sync.Mutex
	youngest := time.Duration(-1)
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		up, err := one(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		if youngest < 0 || up < youngest {
			youngest = up
		}
		return err
	})
	return youngest, err
}
