package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/chaos/client"
	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/quorate/quorate/internal/chaos/judge"
	"github.com/quorate/quorate/internal/chaos/nemesis"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/samber/lo"
)

// print writes the result of a run to the terminal.
func (r *result) print(out io.Writer) {
	h := r.History
	fmt.Fprintf(out, "%d operations of %d client lives, holds per second under faults: %s; %d reads, %d writes "+
		"and %d refusals at the resource\n",
		len(h.Ops), h.Lives, r.rates(), r.Resource.Reads, r.Resource.Writes, r.Resource.Refused)
	fmt.Fprintf(out,
		"models: %d steps in %d histories, %d undecided, %v; longest wait %v when all was well, %v under faults; "+
			"%d claims lost their place when all was well; %d clients closed before every node had confirmed\n",
		r.Models.Operations, r.Models.Histories, r.Models.Unknown, r.Models.Took.Round(time.Millisecond),
		r.Waits.Calm.Round(time.Millisecond), r.Waits.Faulty.Round(time.Millisecond), r.Waits.Restarted,
		h.Late)
	if slices.Contains(r.Plan.Work, "once") {
		fmt.Fprintf(out, "once: %s\n", r.Once)
	}
	fmt.Fprintf(out, "%d pushes and %d pieces of requests and answers came late; %d connections ended while "+
		"their client slept\n", r.Pushes, r.Pieces, r.Ended)
	fmt.Fprintf(out, "clocks of a majority of the servers: off by %v at most\n", r.Apart)
	fmt.Fprintf(out, "%s: %v\n", rivalRow, r.Rivals)
	fmt.Fprintf(out, "%d times a node that lost its data was repaired\n", r.Repairs)
	if r.Plan.Exchanges() {
		fmt.Fprintf(out, "exchanges done, failed; operators killed; copies offered: %v\n", r.Exchanges)
	}
	if r.Excused > 0 {
		fmt.Fprintf(out,
			"%d violations of liveness are excused: no quorum of servers answered the harness within %v\n", r.Excused,
			fleet.Prompt)
	}
	for _, c := range r.faultCounts() {
		fmt.Fprintf(out, "  %4d  %s%s\n", c.done, c.kind, c.rest())
	}
	for i, v := range r.Violations {
		if i == 20 {
			fmt.Fprintf(out, "... and %d more\n", len(r.Violations)-i)
			break
		}
		r.printViolation(out, v)
	}
	switch {
	case r.Plan.Control != "" && r.asExpected():
		fmt.Fprintf(out, "the control has failed, as it must: %s\n", r.harm())
	case r.Plan.Control != "":
		fmt.Fprintln(out, "THE CONTROL HAS NOT FAILED: the checkers have not seen what they must")
	case len(r.Violations) == 0:
		fmt.Fprintf(out, "no violation (seed %d)\n", r.Plan.Seed)
	default:
		fmt.Fprintf(out, "%d VIOLATIONS: %v\n", len(r.Violations), &r.Plan)
	}
}

// printViolation writes one violation, with the operations and the faults
// around it.
func (r *result) printViolation(out io.Writer, v judge.Violation) {
	fmt.Fprintf(out, "VIOLATION at %s: %s\n", record.Seconds(v.At), v.What)
	for i, o := range v.Ops {
		if i == 12 {
			fmt.Fprintf(out, "    ... and %d more\n", len(v.Ops)-i)
			break
		}
		fmt.Fprintln(out, "   ", o)
	}
	if v.At == 0 {
		return
	}
	around := int64(r.Plan.Guard + r.Plan.TTL)
	for _, f := range r.Faults {
		if f.From < v.At && f.To > v.At-around {
			fmt.Fprintf(out, "    fault from %s to %s: %v\n", record.Seconds(f.From), record.Seconds(f.To), f)
		}
	}
}

// saveViolations writes all violations to a file.
func (r *result) saveViolations(path string) error {
	var b strings.Builder
	for _, v := range r.Violations {
		r.printViolation(&b, v)
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

// saveFaults writes the faults to a file, for investigating a violation.
func saveFaults(faults []nemesis.Fault, path string) error {
	var b strings.Builder
	for _, f := range faults {
		fmt.Fprintf(&b, "%s to %s: %v\n", record.Seconds(f.From), record.Seconds(f.To), f)
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

func (c faultCount) rest() string {
	var parts []string
	if c.skip > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped", c.skip))
	}
	if c.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d not carried out to the end", c.failed))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// harm describes the harm that a control has shown.
func (r *result) harm() string {
	slept := lo.CountBy(r.Resource.Corrupt,
		func(l record.LostUpdate) bool { return judge.Overslept(l, r.History.ByOp) })
	if r.Plan.Control == client.ControlRival {
		return fmt.Sprintf("%d violations; %d holds beside one of %d holds of rivals", len(r.Violations),
			lo.CountBy(r.Violations, func(v judge.Violation) bool {
				return strings.Contains(v.What,
					judge.BesideRival)
			}), r.Rivals.Holds)
	}
	return fmt.Sprintf("%d violations; %d lost updates in %d writes (%d by clients that slept through their "+
		"lease), %d holds beyond the capacity in %d",
		len(r.Violations), len(r.Resource.Corrupt), r.Resource.Writes, slept, len(r.tooMany()),
		lo.CountBy(r.History.Ops, func(o *judge.Operation) bool { return o.Begin > 0 }))
}

// rivalRow labels the numbers of judge.RivalStats.
const rivalRow = "holds of rivals; with no loss of memory before them; with a list that the set had " +
	"outgrown; overlaps that a loss excuses"

// markdown returns the report on the runs, and on the simulator if there is
// one.
func markdown(results []*result, simulator string) string {
	var b strings.Builder
	first := results[0]
	fmt.Fprintf(&b, "%s, Redis %s, %s on %s/%s with %d processors. The ttl is %v, the guard time %v.\n",
		first.Began.Format(time.DateOnly), first.Redis,
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), first.Plan.TTL, first.Plan.Guard)
	b.WriteString("\n| | " + strings.Join(lo.Map(results,
		func(r *result, _ int) string { return r.title() }), " | ") + " |\n|---|" +
		strings.Repeat("---:|", len(results)) + "\n")
	row := func(name string, cell func(*result) string) {
		fmt.Fprintf(&b, "| %s | %s |\n", name,
			strings.Join(lo.Map(results, func(r *result, _ int) string { return cell(r) }), " | "))
	}
	count := func(n int) string { return fmt.Sprint(n) }
	row("seed", func(r *result) string { return fmt.Sprint(r.Plan.Seed) })
	row("nodes keep their data", func(r *result) string { return r.Plan.Store })
	row("clients × work", func(r *result) string {
		return fmt.Sprintf("%d × %s", r.Plan.Clients, strings.Join(r.Plan.Work, ", "))
	})
	row("most holds are shorter than", func(r *result) string { return r.Plan.Hold.String() })
	row("tracks", func(r *result) string { return strings.Join(r.Plan.Tracks, ", ") })
	row("faults for", func(r *result) string { return r.Plan.For.String() })
	row("operations", func(r *result) string { return count(len(r.History.Ops)) })
	row("holds per second under faults", (*result).rates)
	row("of each at least", func(r *result) string { return fmt.Sprint(r.Plan.MinRate) })
	row("client processes in all", func(r *result) string { return count(r.History.Lives) })
	row("writes to the resource", func(r *result) string { return count(r.Resource.Writes) })
	row("requests refused by their token", func(r *result) string { return count(r.Resource.Refused) })
	row("steps checked against models", func(r *result) string { return count(r.Models.Operations) })
	row("histories, of which undecided in time",
		func(r *result) string { return fmt.Sprintf("%d, %d", r.Models.Histories, r.Models.Unknown) })
	row("rounds of once, of which done",
		func(r *result) string { return fmt.Sprintf("%d, %d", r.Once.Rounds, r.Once.Done) })
	row("runs, completed, of which after another of the round", func(r *result) string {
		return fmt.Sprintf("%d, %d, %d", r.Once.Runs, r.Once.Completed, r.Once.Repeated)
	})
	row("answers of Status", func(r *result) string { return count(r.Once.Told) })
	row("times a node that lost its data was repaired", func(r *result) string { return count(r.Repairs) })
	row("exchanges done, failed; operators killed; copies offered",
		func(r *result) string { return r.Exchanges.String() })
	row("answers about the leader", func(r *result) string {
		return count(lo.CountBy(r.History.Told, func(s judge.Sighting) bool { return s.Kind == "leader" }))
	})
	row("pushes that came late; pieces of requests and answers",
		func(r *result) string { return fmt.Sprintf("%d; %d", r.Pushes, r.Pieces) })
	row("connections ended while their client slept", func(r *result) string { return fmt.Sprint(r.Ended) })
	row("the most that the clocks of a majority of the servers were off",
		func(r *result) string { return r.Apart.String() })
	row(rivalRow, func(r *result) string { return r.Rivals.String() })
	row("longest wait when all was well",
		func(r *result) string { return r.Waits.Calm.Round(time.Millisecond).String() })
	row("longest wait under faults", func(r *result) string {
		return r.Waits.Faulty.Round(time.Millisecond).String()
	})
	row("waits given up after "+client.Patience.String(),
		func(r *result) string { return count(r.Waits.GaveUp) })
	row("clients that closed before every node had confirmed",
		func(r *result) string { return count(r.History.Late) })
	row("**violations**", func(r *result) string { return r.verdict() })

	writeFaults(&b, results, row)
	writeViolations(&b, results)
	b.WriteString(simulator)
	return b.String()
}

// writeFaults writes how often each kind of fault was done in each run.
func writeFaults(b *strings.Builder, results []*result, row func(string, func(*result) string)) {
	b.WriteString("\n### Faults\n\n| | " + strings.Join(lo.Map(results,
		func(r *result, _ int) string { return r.title() }), " | ") + " |\n|---|" +
		strings.Repeat("---:|", len(results)) + "\n")
	for _, kind := range kinds(results) {
		row(kind, func(r *result) string {
			for _, c := range r.faultCounts() {
				if c.kind == kind {
					return fmt.Sprintf("%d%s", c.done, c.rest())
				}
			}
			return "–"
		})
	}
}

// writeViolations writes the first violations of each run that has any.
func writeViolations(b *strings.Builder, results []*result) {
	for _, r := range results {
		if len(r.Violations) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n### Violations: %s\n\n```text\n", r.title())
		for _, v := range r.Violations[:min(20, len(r.Violations))] {
			r.printViolation(b, v)
		}
		b.WriteString("```\n")
	}
}

// The report is placed between these lines of a document. Everything else in
// the document is written by hand and stays as it is.
const begin, end = "<!-- chaos: begin -->\n", "<!-- chaos: end -->"

// around returns the text of a document before and after the report.
func around(file string) (before, after string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	before, rest, begun := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return "", "", fmt.Errorf("%s has no place for a report: the lines %q and %q",
			file, strings.TrimSpace(begin), end)
	}
	return before, after, nil
}

// fill replaces the report in a document.
func fill(file, report string) error {
	before, after, err := around(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(before+begin+report+end+after), 0o644)
}

const simulated = `
### The simulator

The same state machine under random schedules, with a simulated network,
	nodes and clocks ([simulation.md](simulation.md)). Printed on %s:

~~~
%s
~~~
`

// simulation returns the part of the report about the simulator, from a file
// with the output of go test -v. It fails if a test has not passed.
func simulation(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if !strings.Contains(string(text), " schedules: ") || strings.Contains(string(text), "FAIL") {
		return "", fmt.Errorf("%s has no schedules that have passed", path)
	}
	return fmt.Sprintf(simulated, info.ModTime().Format(time.DateOnly), strings.TrimSpace(string(text))), nil
}

func (r *result) rates() string {
	return strings.Join(lo.Map(r.Plan.Work,
		func(kind string, _ int) string { return fmt.Sprintf("%s %.0f", kind, r.Rates[kind]) }), ", ")
}

func (r *result) title() string {
	title := fmt.Sprintf("%d nodes", r.Plan.Nodes)
	if r.Plan.Nodes == 1 {
		title = "1 node"
	}
	if r.Plan.Control != "" {
		title += ", control " + r.Plan.Control
	}
	return title
}

func (r *result) verdict() string {
	switch {
	case r.Plan.Control == "":
		return fmt.Sprintf("**%d**", len(r.Violations))
	case r.asExpected():
		return "must have some: " + r.harm()
	default:
		return "NONE, though there must be"
	}
}

// kinds returns all kinds of faults in the results, in order.
func kinds(results []*result) (all []string) {
	for _, r := range results {
		for _, c := range r.faultCounts() {
			if !slices.Contains(all, c.kind) {
				all = append(all, c.kind)
			}
		}
	}
	return all
}
