package report

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/samber/lo"
)

// The result of one benchmark.

// Figures has the results of a turn, by the names in figureNames.
type Figures map[string]float64

// Spread is the distribution of a figure over the rounds.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func SpreadOf(v []float64) Spread {
	v = slices.Sorted(slices.Values(v))
	return Spread{Median: v[len(v)/2], Min: v[0], Max: v[len(v)-1]}
}

// Result is the result of a bench.
type Result struct {
	Name   string   `json:"name"`
	Group  string   `json:"group"`
	Series string   `json:"series,omitempty"`
	X      float64  `json:"x,omitempty"`
	Title  string   `json:"title"`
	Show   []string `json:"show"`
	Sides  []string `json:"sides"`
	// By figure and side.
	Figures map[string]map[string]Spread `json:"figures"`
	// By figure and side: the first side's figure divided by that side's, round
	// by round. Rounds differ because of other load on the machine. Within one
	// round the sides differ less.
	Ratios map[string]map[string]Spread `json:"ratios"`
	// Where the client's processor time went, in the order of [Frame].
	Flame []Frame `json:"flame,omitempty"`
}

// Collect computes the medians of the turns.
func (r *Result) Collect(turns map[string][]Figures) {
	for _, name := range r.Sides {
		for figure := range turns[name][0] {
			own := lo.Map(turns[name], func(f Figures, _ int) float64 { return f[figure] })
			put(r.Figures, figure, name, own)
			if name == r.Sides[0] || !slices.Contains(r.Show, figure) {
				continue
			}
			put(r.Ratios, figure, name, lo.Map(turns[r.Sides[0]],
				func(f Figures, i int) float64 { return f[figure] / own[i] }))
		}
	}
}

// put drops values that are not numbers, which neither JSON nor a table can
// show.
func put(to map[string]map[string]Spread, figure, side string, v []float64) {
	if slices.ContainsFunc(v, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
		return
	}
	if to[figure] == nil {
		to[figure] = map[string]Spread{}
	}
	to[figure][side] = SpreadOf(v)
}

// Micros converts a time to a figure's unit.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// And adds another turn's figures to these.
func (f Figures) And(g Figures) Figures {
	maps.Copy(f, g)
	return f
}
