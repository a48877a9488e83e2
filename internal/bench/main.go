// Command bench measures quorate against other libraries and against the floor:
// the bare commands, multiplexed on raw connections, without any library's
// logic.
//
// All figures are of one run on one machine, where clients and servers share
// the processors, so only ratios say anything. The sides of a bench take turns
// within every round (A B C A B C), and the report shows the median over the
// rounds: of each figure, and of each round's ratio.
//
// With -from it measures nothing, and draws and writes what a run before has
// found.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	var r *report.Results
	if s.from != "" {
		r, err = report.ReadResults(s.from)
	} else {
		r, err = measureAll(s)
	}
	if err != nil {
		return err
	}
	return tell(r, s)
}

func measureAll(s settings) (*report.Results, error) {
	redis.SetLogger(quiet{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	todo := lo.Filter(benches(s), func(b bench, _ int) bool { return s.filter.MatchString(b.Name) })
	if len(todo) == 0 {
		return nil, fmt.Errorf("no bench matches -run %v", s.filter)
	}
	r, err := newResults(ctx, s)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for _, b := range todo {
		fmt.Fprintf(os.Stderr, "%5.0fs %s: %s\n", time.Since(began).Seconds(), b.Name, b.Title)
		result, err := measure(ctx, b, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name, err)
		}
		r.Benches = append(r.Benches, result)
	}
	return r, nil
}

// tell prints the tables, and writes the files that were asked for.
func tell(r *report.Results, s settings) error {
	if err := r.Print(os.Stdout); err != nil {
		return err
	}
	if s.json != "" {
		if err := r.Write(s.json); err != nil {
			return err
		}
	}
	if s.plots != "" {
		if err := r.Draw(s.plots); err != nil {
			return err
		}
	}
	for _, file := range s.documents {
		if err := r.Fill(file); err != nil {
			return err
		}
	}
	return nil
}

func newResults(ctx context.Context, s settings) (*report.Results, error) {
	c, err := redistest.Run(1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	r := &report.Results{
		Date: time.Now().UTC().Format(time.DateOnly), Processors: runtime.NumCPU(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
		Versions: map[string]string{}, Rounds: s.rounds, TurnMS: s.duration.Milliseconds(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if slices.Contains(report.Compared, d.Path) {
				r.Versions[d.Path] = d.Version
			}
		}
	}
	r.Redis, err = direct(c).version(ctx)
	return r, err
}
