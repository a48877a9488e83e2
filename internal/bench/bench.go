package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/quorate/quorate/internal/bench/report"
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
	profile func(ctx context.Context, d time.Duration) ([]report.Frame, error)
}

// side is one of those that are compared. Its turn lasts about d, and fails
// when a lock could not be acquired, or was had by two.
type side struct {
	name string
	turn func(ctx context.Context, d time.Duration) (report.Figures, error)
}

// onClose calls f at the end, before what was given earlier.
func (st *stage) onClose(f func()) { st.ends = append(st.ends, f) }

func (st *stage) close() {
	for _, f := range slices.Backward(st.ends) {
		f()
	}
}

// patience is how long setting up may take, 100,000 locks included.
const patience = 3 * time.Minute

// measure runs all rounds of one bench, on servers of its own.
func measure(ctx context.Context, b bench, set settings) (report.Result, error) {
	r := report.Result{
		Name: b.Name, Group: b.Group, Series: b.Series, X: b.X, Title: b.Title, Show: b.Show,
		Figures: map[string]map[string]report.Spread{}, Ratios: map[string]map[string]report.Spread{},
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
	turns := map[string][]report.Figures{}
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
	r.Collect(turns)
	if st.profile == nil {
		return r, nil
	}
	var err error
	r.Flame, err = st.profile(ctx, d)
	return r, err
}
