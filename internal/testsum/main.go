// Command testsum runs targets of the Makefile, one after the other, and adds
// up the Go tests in them.
//
//	go run ./internal/testsum lint unit 'sim SEEDS=5000'
//
// Each target runs, whatever came of those before it, and has JSON=-json set,
// which it hands to go test. Of tests that fail the output is shown, and of
// others nothing. While a stage runs, a line says for how long, how many tests
// have passed and which packages are being tested. The last line is the sum. A target that fails without a Go
// test that fails counts as one failure. In CI a skipped test is a failure.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

func main() {
	out := newScreen(os.Stdout)
	s := sum{out: out, progress: out.progress, strict: os.Getenv("CI") != ""}
	ticker := time.NewTicker(out.every)
	defer ticker.Stop()
	s.ticks = ticker.C
	for _, stage := range os.Args[1:] {
		s.run(stage, exec.Command("make", append(strings.Fields(stage), "-s", "JSON=-json")...))
	}
	if !s.report() {
		os.Exit(1)
	}
}

// run runs one stage and says how long it took, by the clock and on processors.
func (s *sum) run(stage string, cmd *exec.Cmd) {
	fmt.Fprintf(s.out, "== %s\n", stage)
	began, failed := time.Now(), s.failed
	s.stage, s.start = stage, began
	cmd.Stderr = s.out
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		s.read(output)
		err = cmd.Wait()
	}
	result := "passed"
	if err != nil && s.failed == failed {
		s.failed++
	}
	if err != nil || s.failed > failed {
		result = "FAILED"
		s.stages = append(s.stages, stage)
	}
	fmt.Fprintf(s.out, "== %s %s in %v", stage, result, time.Since(began).Round(time.Second))
	if p := cmd.ProcessState; p != nil {
		fmt.Fprintf(s.out, ", %v of processor time", (p.UserTime() + p.SystemTime()).Round(time.Second))
	}
	if len(s.slow) > 0 {
		fmt.Fprintf(s.out, "; of that %s", strings.Join(s.slow, ", "))
	}
	s.slow = nil
	fmt.Fprintln(s.out)
}

// read takes in what a stage writes, line by line. What is no event of go test
// is shown as it is.
func (s *sum) read(r io.Reader) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadString('\n')
			lines <- line
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return
			}
			if e, ok := parse(line); ok {
				s.event(e)
			} else {
				fmt.Fprint(s.out, line)
			}
		case now := <-s.ticks:
			s.progress(s.status(now))
		}
	}
}

// status is the line of progress: how long the stage has been running, how many
// tests have passed, and which packages are being tested.
func (s *sum) status(now time.Time) string {
	line := fmt.Sprintf("   %s %v: %d passed", s.stage, now.Sub(s.start).Round(time.Second), s.passed)
	if s.failed > 0 {
		line += fmt.Sprintf(", %d failed", s.failed)
	}
	if len(s.running) > 0 {
		line += "; now " + strings.Join(s.running, ", ")
	}
	return line
}

// report writes what failed and what was skipped, and the sum. It returns
// whether all is well.
func (s *sum) report() bool {
	fmt.Fprintln(s.out)
	for _, name := range s.skips {
		fmt.Fprintln(s.out, "skipped:", name)
	}
	for _, name := range s.fails {
		fmt.Fprintln(s.out, "failed:", name)
	}
	if s.strict && s.skipped > 0 {
		fmt.Fprintln(s.out, "No test may be skipped in CI.")
		s.failed++
	}
	if len(s.stages) > 0 {
		fmt.Fprintln(s.out, "failed stages:", strings.Join(s.stages, " "))
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
	return s.failed == 0
}
