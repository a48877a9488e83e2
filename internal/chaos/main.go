package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/quorate/quorate/internal/chaos/client"
	"github.com/quorate/quorate/internal/chaos/nemesis"
	"github.com/quorate/quorate/internal/chaos/record"
)

// exitViolation is the exit status when a checker has found something.
const exitViolation = 1

func main() {
	if isWorker, status := client.AsWorker(); isWorker {
		os.Exit(status)
	}
	if isOperator, status := nemesis.AsOperator(); isOperator {
		os.Exit(status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := command(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(status)
}

// settings are the flags.
type settings struct {
	plans     []plan
	report    string
	simulator string // file with the simulator's part of the report
}

func parse(args []string) (settings, error) {
	var s settings
	p := defaults()
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	nodes := f.String("nodes", "3", "how many servers, and a run for each of several: 1,3,5; one server has no "+
		"exchanges, no clock that jumps, and no once")
	work := f.String("work", strings.Join(p.Work, ","), "what the clients do")
	tracks := f.String("tracks", strings.Join(p.Tracks, ","),
		"what is broken; besides, drift is a part of clocks, and misuse what the library does not bear")
	control := f.String("control", client.ControlNone,
		"what to run, and a run for each of several: none, the library itself; or a control that must fail, "+
			"for a minute at the most: unfenced, a resource without tokens while clients are stopped; redsync, under "+
			"the same faults; rival, rivals that lock other keys; "+client.RuleHelp)
	f.DurationVar(&p.For, "for", p.For, "how long each run has faults")
	f.DurationVar(&p.Calm, "calm", p.Calm, "how long each liveness phase lasts")
	f.DurationVar(&p.Pace, "pace", p.Pace, "average time between two faults of a track")
	f.Uint64Var(&p.Seed, "seed", p.Seed, "which faults, and in which order")
	f.StringVar(&p.Store, "store", p.Store, "how servers keep their data: memory, everysec, always, or mixed")
	f.IntVar(&p.Clients, "clients", p.Clients, "how many client processes")
	f.IntVar(&p.Rivals, "rivals", p.Rivals,
		"how many processes lock the names of mutexes and elections by redsync meanwhile")
	f.Float64Var(&p.Rate, "rate", p.Rate, "operations per second that each goroutine of a client tries for")
	f.DurationVar(&p.Hold, "hold", p.Hold, "most holds are shorter than this")
	f.DurationVar(&p.Bound, "bound", p.Bound,
		"how long a wait may last when all is well; more on a machine that is busy with other things")
	f.Float64Var(&p.MinRate, "min", p.MinRate,
		"holds per second of each kind of work, below which a run says nothing")
	f.StringVar(&s.report, "report", "",
		"put a report into this Markdown file, between its lines <!-- chaos: begin --> and <!-- chaos: end -->")
	simulated := f.String("simulated", "",
		"a file of what the simulator has printed, for the report: go test -v ./internal/sim -run TestSchedules "+
			"-seeds=N")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	var err error
	if s.simulator, err = simulation(*simulated); err != nil {
		return s, fmt.Errorf("-simulated: %w", err)
	}
	if s.report != "" {
		if _, _, err = around(s.report); err != nil { // fail before the runs, not after them
			return s, fmt.Errorf("-report: %w", err)
		}
	}
	p.Work, p.Tracks = strings.Split(*work, ","), strings.Split(*tracks, ",")
	for _, text := range strings.Split(*nodes, ",") {
		if p.Nodes, err = strconv.Atoi(text); err != nil {
			return s, fmt.Errorf("-nodes %s: %w", *nodes, err)
		}
		for _, c := range strings.Split(*control, ",") {
			one := p
			if err := one.control(c); err != nil {
				return s, fmt.Errorf("-control %s: %w", c, err)
			}
			one.alone()
			if err := one.check(); err != nil {
				return s, err
			}
			s.plans = append(s.plans, one)
		}
	}
	return s, nil
}

// command carries out the runs and returns the exit status.
func command(ctx context.Context, args []string, out io.Writer) (status int) {
	s, err := parse(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return record.ExitVoid
	}
	var results []*result
	for _, p := range s.plans {
		r, err := run(ctx, p, out)
		if r.History != nil {
			r.print(out)
			results = append(results, r)
		}
		switch {
		case r.History != nil && !r.asExpected():
			status = exitViolation
		case err != nil && status == 0:
			status = record.ExitVoid
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "chaos: the run says nothing:", err)
			break
		}
	}
	if s.report != "" && len(results) == len(s.plans) {
		if err := fill(s.report, markdown(results, s.simulator)); err != nil {
			fmt.Fprintln(os.Stderr, "chaos:", err)
			return record.ExitVoid
		}
	}
	return status
}
