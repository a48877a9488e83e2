package report

import (
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/samber/lo"
)

// table is a group of results: a row for each shown figure, a column for each
// side that took part.
type table struct {
	results []Result
	sides   []string
	against []string // the sides that the first one is compared with
}

// references are the sides that ratios refer to.
var references = []string{RedsyncName, FastName, RueidisName, BsmName, FloorName, FencedName, HealthyName,
	HopName, HopsName, SyncName, MetricsName, FewName, SeenName}

func (r *Results) table(group string) table {
	t := table{results: lo.Filter(r.Benches, func(b Result, _ int) bool { return b.Group == group })}
	t.sides = lo.Uniq(lo.FlatMap(t.results, func(b Result, _ int) []string { return b.Sides }))
	t.against = lo.Filter(references, func(name string, _ int) bool { return slices.Contains(t.sides, name) })
	return t
}

func (r *Results) groups() []string {
	return lo.Uniq(lo.Map(r.Benches, func(b Result, _ int) string { return b.Group }))
}

func (t table) header() []string {
	of := lo.Map(t.against, func(name string, _ int) string { return "quorate / " + name })
	return slices.Concat([]string{"", ""}, t.sides, of)
}

func (t table) rows() [][]string {
	var rows [][]string
	for _, b := range t.results {
		for i, figure := range b.Show {
			if len(b.Figures[figure]) == 0 {
				continue
			}
			row := []string{lo.Ternary(i == 0, b.Title, ""), Units[figure]}
			cell := func(of map[string]Spread, name string) string {
				s, ok := of[name]
				return lo.Ternary(ok, number(s.Median), "–")
			}
			for _, name := range t.sides {
				row = append(row, cell(b.Figures[figure], name))
			}
			for _, name := range t.against {
				row = append(row, cell(b.Ratios[figure], name))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// number formats v with three digits, or two decimals below 10.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// Print writes all tables for a terminal.
func (r *Results) Print(w io.Writer) error {
	for _, group := range r.groups() {
		t := r.table(group)
		fmt.Fprintf(w, "\n%s\n", group)
		out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range slices.Concat([][]string{t.header()}, t.rows()) {
			fmt.Fprintln(out, strings.Join(row, "\t"))
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.about())
	return err
}

func (t table) markdown() string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.header())
	line(lo.Map(t.header(), func(_ string, i int) string { return lo.Ternary(i < 2, "---", "---:") }))
	for _, row := range t.rows() {
		line(row)
	}
	return b.String()
}

// place matches the place for a table in a document: between <!-- bench:GROUP
// --> and <!-- /bench -->. GROUP "about" is the line from about.
var place = regexp.MustCompile(`(?s)(<!-- bench:([a-z]+) -->\n).*?(<!-- /bench -->)`)

// Fill puts the tables into a Markdown file. Tables without results stay as
// they are. If any table stays, so does the line about all of them.
func (r *Results) Fill(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	groups := r.groups()
	all := lo.EveryBy(place.FindAllStringSubmatch(string(text), -1), func(part []string) bool {
		return part[2] == "about" || slices.Contains(groups, part[2])
	})
	filled := place.ReplaceAllStringFunc(string(text), func(found string) string {
		part := place.FindStringSubmatch(found)
		switch {
		case part[2] == "about" && all:
			return part[1] + r.about() + "\n" + part[3]
		case slices.Contains(groups, part[2]):
			return part[1] + r.table(part[2]).markdown() + part[3]
		default:
			return found
		}
	})
	return os.WriteFile(file, []byte(filled), 0o644) //nolint:gosec // a document for all users
}
