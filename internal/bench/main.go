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
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
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

// settings are the flags.
type settings struct {
	rounds    int
	duration  time.Duration // of one side's turn in a round
	leases    int           // held at once, at most
	names     int           // used once
	filter    *regexp.Regexp
	libs      *regexp.Regexp
	from      string
	json      string
	plots     string
	documents []string
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&s.rounds, "rounds", 5, "rounds, at least 5 for medians that mean something")
	f.DurationVar(&s.duration, "d", 400*time.Millisecond, "length of one side's turn in a round")
	f.IntVar(&s.leases, "leases", 100_000, "leases that one process holds, at most")
	f.IntVar(&s.names, "names", 100_000, "names that are used once; a million take 7 minutes")
	filter := f.String("run", "", "run only benches whose name matches this regular expression")
	libs := f.String("libs", "", "measure only libraries whose name matches this regular expression")
	f.StringVar(&s.from, "from", "", "measure nothing: take the results from this file")
	f.StringVar(&s.json, "json", "", "write the results to this file")
	f.StringVar(&s.plots, "plots", "", "draw the plots into this folder")
	f.Func("md", "put the tables into this Markdown file, between its <!-- bench:… --> marks; may be repeated", func(file string) error {
		s.documents = append(s.documents, file)
		return nil
	})
	short := f.Bool("short", false, "a smoke test: one short round, few leases and names")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if *short {
		s.rounds, s.duration, s.leases, s.names = 1, 20*time.Millisecond, min(s.leases, 1000), min(s.names, 1000)
	}
	if s.rounds < 1 || s.duration <= 0 || s.leases < 1 || s.names < 1 {
		return s, fmt.Errorf("-rounds %d -d %v -leases %d -names %d: all must be positive", s.rounds, s.duration, s.leases, s.names)
	}
	var err error
	if s.filter, err = regexp.Compile(*filter); err != nil {
		return s, fmt.Errorf("-run: %w", err)
	}
	if s.libs, err = regexp.Compile(*libs); err != nil {
		return s, fmt.Errorf("-libs: %w", err)
	}
	return s, nil
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
