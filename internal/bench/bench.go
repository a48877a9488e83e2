package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/samber/lo"
)

// bench is one thing that is measured: by each of its sides, in turns.
type bench struct {
	Name   string
	Group  string   // the table that it is a row of
	Series string   // the plots that it is a point of, at X
	X      float64  // what grows in the series
	Title  string   // what is measured, in words
	Show   []string // the figures that count: the rows of the table
	open   func(ctx context.Context, set settings, st *stage) error
}

// stage is a bench set up: servers that run, sides that are connected.
type stage struct {
	sides   []side
	stretch float64 // turns are so many times as long as others; 0: once
	single  bool    // one turn without a warm-up: what it finds is a size, and depends on no scheduler
	ends    []func()

	// What is drawn beside the figures; nil: nothing. It takes several times d.
	profile func(ctx context.Context, d time.Duration) ([]frame, error)
}

// side is one of those that are compared. Its turn lasts about d, and fails
// when a lock could not be acquired, or was had by two.
type side struct {
	name string
	turn func(ctx context.Context, d time.Duration) (figures, error)
}

// onClose calls f at the end, before what was given earlier.
func (st *stage) onClose(f func()) { st.ends = append(st.ends, f) }

func (st *stage) close() {
	for _, f := range slices.Backward(st.ends) {
		f()
	}
}

// figures are what a turn has found, by the names in figureNames.
type figures map[string]float64

// spread is a figure over the rounds.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(v []float64) spread {
	v = slices.Sorted(slices.Values(v))
	return spread{Median: v[len(v)/2], Min: v[0], Max: v[len(v)-1]}
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
	Figures map[string]map[string]spread `json:"figures"`
	// By figure and side: the first side's figure divided by that side's, round
	// by round. Rounds differ by what else the machine does; the two of one
	// round, side by side, differ less.
	Ratios map[string]map[string]spread `json:"ratios"`
	// What the client's processor time went into, in the order of [frame].
	Flame []frame `json:"flame,omitempty"`
}

// patience is how long setting up may take, 100,000 locks included.
const patience = 3 * time.Minute

// measure runs all rounds of one bench, on servers of its own.
func measure(ctx context.Context, b bench, set settings) (Result, error) {
	r := Result{
		Name: b.Name, Group: b.Group, Series: b.Series, X: b.X, Title: b.Title, Show: b.Show,
		Figures: map[string]map[string]spread{}, Ratios: map[string]map[string]spread{},
	}
	var st stage
	defer st.close()
	opening, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := b.open(opening, set, &st); err != nil {
		return r, err
	}
	d := set.duration
	if st.stretch > 0 {
		d = time.Duration(float64(d) * st.stretch)
	}
	turns := map[string][]figures{}
	for _, s := range st.sides {
		r.Sides = append(r.Sides, s.name)
		if st.single {
			continue
		}
		// Connections, pools and caches warm up.
		if _, err := s.turn(ctx, d/2); err != nil {
			return r, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for range lo.Ternary(st.single, 1, set.rounds) {
		for _, s := range st.sides {
			f, err := s.turn(ctx, d)
			if err != nil {
				return r, fmt.Errorf("%s: %w", s.name, err)
			}
			turns[s.name] = append(turns[s.name], f)
		}
	}
	r.collect(turns)
	if st.profile == nil {
		return r, nil
	}
	var err error
	r.Flame, err = st.profile(ctx, d)
	return r, err
}

// collect makes medians of turns.
func (r *Result) collect(turns map[string][]figures) {
	for _, name := range r.Sides {
		for figure := range turns[name][0] {
			own := lo.Map(turns[name], func(f figures, _ int) float64 { return f[figure] })
			put(r.Figures, figure, name, own)
			if name == r.Sides[0] || !slices.Contains(r.Show, figure) {
				continue
			}
			put(r.Ratios, figure, name, lo.Map(turns[r.Sides[0]], func(f figures, i int) float64 { return f[figure] / own[i] }))
		}
	}
}

// put drops what is no number: JSON has no word for it, and no table either.
func put(to map[string]map[string]spread, figure, side string, v []float64) {
	if slices.ContainsFunc(v, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
		return
	}
	if to[figure] == nil {
		to[figure] = map[string]spread{}
	}
	to[figure][side] = spreadOf(v)
}
