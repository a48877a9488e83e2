// Command bench measures quorate against redsync and against the floor: the
// bare commands, multiplexed on raw connections, without any library's logic.
//
// All figures are of one run on one machine, where clients and servers share
// the processors, so only ratios say anything. The libraries take turns within
// every round (A B C A B C), and what is told is the median over the rounds: of
// each figure, and of each round's ratio.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"

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
	rounds   int
	duration time.Duration // of one library's turn in a round
	nodes    int           // 0: each scenario's own numbers
	filter   *regexp.Regexp
	libs     *regexp.Regexp
	json     string
	markdown string
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&s.rounds, "rounds", 7, "rounds, at least 5 for medians that mean something")
	f.DurationVar(&s.duration, "d", 400*time.Millisecond, "length of one library's turn in a round")
	f.IntVar(&s.nodes, "n", 0, "run the scenarios on so many nodes (default: each on its own numbers of nodes)")
	filter := f.String("run", "", "run only scenarios whose name matches this regular expression")
	libs := f.String("libs", "", "measure only libraries whose name matches this regular expression")
	f.StringVar(&s.json, "json", "", "write the results to this file as JSON")
	f.StringVar(&s.markdown, "md", "", "write the table to this file as Markdown")
	short := f.Bool("short", false, "a smoke test: one short round of everything")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if *short {
		s.rounds, s.duration = 1, 50*time.Millisecond
	}
	if s.rounds < 1 || s.duration <= 0 || s.nodes < 0 {
		return s, fmt.Errorf("-rounds %d -d %v -n %d: rounds and duration must be positive", s.rounds, s.duration, s.nodes)
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	todo := lo.Filter(scenarios(s.nodes), func(sc scenario, _ int) bool { return s.filter.MatchString(sc.Name) })
	if len(todo) == 0 {
		return fmt.Errorf("no scenario matches -run %v", s.filter)
	}
	var results []Result
	for _, sc := range todo {
		fmt.Fprintf(os.Stderr, "%s: %s ...\n", sc.Name, sc.title())
		r, err := measure(ctx, sc, s)
		if err != nil {
			return fmt.Errorf("%s: %w", sc.Name, err)
		}
		results = append(results, r)
	}
	return report(os.Stdout, s, results)
}
