package main

import (
	"flag"
	"fmt"
	"regexp"
	"time"
)

// settings are the flags.
type settings struct {
	rounds    int
	duration  time.Duration // length of one side's turn in a round
	leases    int           // maximum number of leases held at once
	names     int           // number of names that are used once
	fleet     int           // connections at once; 0 skips the capacity benches
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
	f.IntVar(&s.fleet, "fleet", 0,
		"measure a node with this many connections, ten holds and 2.5 waiters for each")
	filter := f.String("run", "", "run only benches whose name matches this regular expression")
	libs := f.String("libs", "", "measure only libraries whose name matches this regular expression")
	f.StringVar(&s.from, "from", "", "measure nothing: take the results from this file")
	f.StringVar(&s.json, "json", "", "write the results to this file")
	f.StringVar(&s.plots, "plots", "", "draw the plots into this folder")
	f.Func("md", "put the tables into this Markdown file, between its <!-- bench:… --> marks; may be repeated",
		func(file string) error {
			s.documents = append(s.documents, file)
			return nil
		})
	short := f.Bool("short", false, "a smoke test: one short round, few leases and names")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if *short {
		s.fleet = 8
		s.rounds, s.duration, s.leases, s.names = 1, 20*time.Millisecond, min(s.leases, 1000), min(s.names, 1000)
	}
	if s.rounds < 1 || s.duration <= 0 || s.leases < 1 || s.names < 1 {
		return s, fmt.Errorf("-rounds %d -d %v -leases %d -names %d: all must be positive", s.rounds,
			s.duration, s.leases, s.names)
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
