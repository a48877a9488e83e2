// Command bench measures quorate against other libraries and against the floor:
// the bare commands, multiplexed on raw connections, without any library's
// logic.
//
// All figures come from one run on one machine, where clients and servers share
// the processors, so only ratios are meaningful. The sides of a bench take
// turns within every round (A B C A B C), and the report shows the median over
// the rounds: of each figure, and of each round's ratio.
//
// With -from it measures nothing, and draws and writes the results of an
// earlier run.
package main

import (
	"fmt"
	"os"

	"github.com/quorate/quorate/internal/bench/report"
)

func main() {
	if err := execute(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// execute carries out a command line.
func execute(args []string) error {
	if len(args) > 0 && args[0] == silentCommand {
		return silent(args[1:])
	}
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
	return publish(r, s)
}

// publish prints the tables, and writes the requested files.
func publish(r *report.Results, s settings) error {
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
