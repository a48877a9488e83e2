package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/samber/lo"
)

// table is the results side by side: one column for each library that took part.
type table struct {
	results   []Result
	libraries []string
}

func newTable(results []Result) table {
	all := []string{quorateName, asyncName, lingerName, mutexName, redsyncName, fastName, floorName}
	return table{results, lo.Filter(all, func(lib string, _ int) bool {
		return lo.SomeBy(results, func(r Result) bool { return len(r.Turns[lib]) > 0 })
	})}
}

func (t table) header() []string {
	return slices.Concat([]string{"scenario", "unit"}, t.libraries, []string{"quorate/redsync", "quorate/floor"})
}

func (t table) row(r *Result) []string {
	format := func(v float64, how string) string {
		if math.IsNaN(v) {
			return "–"
		}
		return fmt.Sprintf(how, v)
	}
	row := []string{r.Title, lo.Ternary(r.Rate, "locks/s", "µs")}
	for _, lib := range t.libraries {
		row = append(row, format(r.value(lib), "%.0f"))
	}
	return append(row, format(r.ratio(quorateName, redsyncName), "%.2f"), format(r.ratio(quorateName, floorName), "%.2f"))
}

func (t table) cpuRow(r *Result) []string {
	row := []string{r.Title, "µs"}
	for _, lib := range t.libraries {
		client := r.median(lib, func(t turn) float64 { return t.ClientCPU })
		server := r.median(lib, func(t turn) float64 { return t.ServerCPU })
		cell := "–"
		if !math.IsNaN(client) {
			cell = fmt.Sprintf("%.0f + %.0f", client, server)
		}
		row = append(row, cell)
	}
	return append(row, fmt.Sprintf("%.2f", r.cpu(quorateName)/r.cpu(redsyncName)), fmt.Sprintf("%.2f", r.cpu(quorateName)/r.cpu(floorName)))
}

// report prints the table, and writes the files that were asked for.
func report(w io.Writer, s settings, results []Result) error {
	out, t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), newTable(results)
	fmt.Fprintln(out, strings.Join(t.header(), "\t"))
	for i := range results {
		fmt.Fprintln(out, strings.Join(t.row(&results[i]), "\t"))
	}
	fmt.Fprintln(out, "\t\nprocessor time per lock, clients + servers\t")
	for i := range results {
		fmt.Fprintln(out, strings.Join(t.cpuRow(&results[i]), "\t"))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nMedians of %d rounds; ratios are medians of the rounds' own. %s\n", s.rounds, machine())
	if lo.SomeBy(results, func(r Result) bool { return r.Quorums > 0 }) {
		fmt.Fprintln(w, "Quorums stand for processes: each has connections of its own, redsync and the floor likewise, and all are in this process.")
	}
	for _, r := range results {
		if note := r.Job.note(); note != "" {
			fmt.Fprintln(w, note)
		}
	}
	if s.json != "" {
		if err := writeJSON(s.json, s, results); err != nil {
			return err
		}
	}
	if s.markdown != "" {
		return os.WriteFile(s.markdown, []byte(t.markdown()), 0o644) //nolint:gosec // a report for everybody
	}
	return nil
}

func machine() string {
	return fmt.Sprintf("%d processors, %s, %s/%s.", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (t table) markdown() string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.header())
	line(lo.Map(t.header(), func(_ string, i int) string { return lo.Ternary(i < 2, "---", "---:") }))
	for i := range t.results {
		line(t.row(&t.results[i]))
	}
	return b.String()
}

// figures are one library's medians in one scenario.
type figures struct {
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	Rate  float64 `json:"per_second"`
	CPU   float64 `json:"cpu_us"` // per lock, clients and servers
	Turns []turn  `json:"rounds"`
}

func writeJSON(file string, s settings, results []Result) error {
	type entry struct {
		Scenario   string             `json:"scenario"`
		Title      string             `json:"title"`
		Libraries  map[string]figures `json:"libraries"`
		ToRedsync  *float64           `json:"quorate_to_redsync,omitempty"`
		ToFloor    *float64           `json:"quorate_to_floor,omitempty"`
		HigherWins bool               `json:"higher_is_better"`
	}
	known := func(v float64) *float64 { return lo.Ternary(math.IsNaN(v), nil, &v) }
	out := struct {
		Machine   string  `json:"machine"`
		Rounds    int     `json:"rounds"`
		TurnMS    int64   `json:"turn_ms"`
		Scenarios []entry `json:"scenarios"`
	}{machine(), s.rounds, s.duration.Milliseconds(), nil}
	for _, r := range results {
		e := entry{
			Scenario: r.Name, Title: r.Title, HigherWins: r.Rate,
			ToRedsync: known(r.ratio(quorateName, redsyncName)), ToFloor: known(r.ratio(quorateName, floorName)),
		}
		e.Libraries = lo.MapValues(r.Turns, func(ts []turn, _ string) figures {
			of := func(get func(turn) float64) float64 {
				return median(lo.Map(ts, func(t turn, _ int) float64 { return get(t) }))
			}
			return figures{
				of(func(t turn) float64 { return t.Mean }), of(func(t turn) float64 { return t.P50 }),
				of(func(t turn) float64 { return t.P99 }), of(func(t turn) float64 { return t.Rate }),
				of(func(t turn) float64 { return t.ClientCPU + t.ServerCPU }), ts,
			}
		})
		out.Scenarios = append(out.Scenarios, e)
	}
	text, err := json.MarshalIndent(out, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // a report for everybody
}
