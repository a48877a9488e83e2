// Package lanes turns stretches of time into the columns of a picture. The
// demo, "quorate top" and "quorate ui" draw with it: time goes to the right, and
// a lane shows which process held a name when.
package lanes

import "time"

// A Span is a stretch of time. Value is what a lane shows in it, above 0.
type Span struct {
	From, To time.Duration
	Value    int
}

// A Window is the time that a picture shows, and in how many columns.
type Window struct {
	From, To time.Duration
	Columns  int
}

// column is the time that column c shows.
func (w Window) column(c int) (from, to time.Duration) {
	length := w.To - w.From
	return w.From + length*time.Duration(c)/time.Duration(w.Columns),
		w.From + length*time.Duration(c+1)/time.Duration(w.Columns)
}

// At returns the column of a moment. One outside the window is in the first or
// the last.
func (w Window) At(t time.Duration) int {
	if w.To <= w.From || w.Columns == 0 {
		return 0
	}
	return min(max(0, int(int64(w.Columns)*int64(t-w.From)/int64(w.To-w.From))), w.Columns-1)
}

// Values returns what each column shows: the value that filled it for longest,
// or 0. So short spans, one after the other, do not look like two at once.
func (w Window) Values(spans []Span) []int {
	values, longest := make([]int, w.Columns), make([]time.Duration, w.Columns)
	for _, s := range spans {
		if s.To <= w.From || s.From >= w.To {
			continue
		}
		for c := w.At(s.From); c <= w.At(s.To); c++ {
			from, to := w.column(c)
			if share := min(s.To, to) - max(s.From, from); share > longest[c] {
				longest[c], values[c] = share, s.Value
			}
		}
	}
	return values
}

// A Run is columns alongside each other that show the same. As JSON it is [at,
// length, value].
type Run [3]int

func (r Run) At() int    { return r[0] }
func (r Run) Len() int   { return r[1] }
func (r Run) Value() int { return r[2] }

// Runs puts columns together that show the same, those that show nothing too.
func Runs(values []int) (runs []Run) {
	for at := 0; at < len(values); {
		n := 1
		for at+n < len(values) && values[at+n] == values[at] {
			n++
		}
		runs = append(runs, Run{at, n, values[at]})
		at += n
	}
	return runs
}
