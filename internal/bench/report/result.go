package report

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/samber/lo"
)

// The result of one benchmark.

// Figures are what a turn has found, by the names in figureNames.
type Figures map[string]float64

// Spread is a figure over the rounds.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func SpreadOf(v []float64) Spread {
	v = slices.Sorted(slices.Values(v))
	return Spread{Median: v[len(v)/2], Min: v[0], Max: v[len(v)-1]}
}

// Result is what a bench gave.
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
	// by round. Rounds differ by what else the machine does; the two of one
	// round, side by side, differ less.
	Ratios map[string]map[string]Spread `json:"ratios"`
	// What the client's processor time went into, in the order of [frame].
	Flame []Frame `json:"flame,omitempty"`
}

// Collect makes medians of turns.
func (r *Result) Collect(turns map[string][]Figures) {
	for _, name := range r.Sides {
		for figure := range turns[name][0] {
			own := lo.Map(turns[name], func(f Figures, _ int) float64 { return f[figure] })
			put(r.Figures, figure, name, own)
			if name == r.Sides[0] || !slices.Contains(r.Show, figure) {
				continue
			}
			put(r.Ratios, figure, name, lo.Map(turns[r.Sides[0]], func(f Figures, i int) float64 { return f[figure] / own[i] }))
		}
	}
}

// put drops what is no number: JSON has no word for it, and no table either.
func put(to map[string]map[string]Spread, figure, side string, v []float64) {
	if slices.ContainsFunc(v, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
		return
	}
	if to[figure] == nil {
		to[figure] = map[string]Spread{}
	}
	to[figure][side] = SpreadOf(v)
}

// Micros is a time in a figure's unit.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// And adds another turn's figures to these.
func (f Figures) And(g Figures) Figures {
	maps.Copy(f, g)
	return f
}
