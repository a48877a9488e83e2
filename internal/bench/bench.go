package main

import (
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// bench is one measurement. Its sides take turns.
type bench struct {
	Name   string
	Group  string   // the table in which it is a row
	Series string   // the plots in which it is a point, at X
	X      float64  // the quantity that grows in the series
	Title  string   // what is measured, in words
	Show   []string // the figures to show as rows of the table
	open   func(ctx context.Context, st *stage) error
}

// stage is a bench that is set up: its servers run, and its sides are
// connected.
type stage struct {
	libs    *regexp.Regexp // the libraries that take part
	sides   []side
	stretch float64 // factor for the length of turns; 0 means 1
	single  bool    // one turn without a warm-up: it measures a size, which does not depend on a scheduler
	ends    []func()

	// Draws a flame graph in addition to the figures, unless nil. It takes
	// several times d.
	profile func(ctx context.Context, d time.Duration) ([]report.Frame, error)
}

// side is one side of the comparison. A turn lasts about d. It fails if a lock
// cannot be acquired, or is held twice at a time.
type side struct {
	name string
	turn func(ctx context.Context, d time.Duration) (report.Figures, error)
}

// onClose registers f to be called at the end, in reverse order.
func (st *stage) onClose(f func()) { st.ends = append(st.ends, f) }

func (st *stage) close() {
	for _, f := range slices.Backward(st.ends) {
		f()
	}
}

// start starts n servers, which run until the stage is closed.
func (st *stage) start(n int) (servers.Nodes, error) {
	c, err := redistest.Run(n)
	if err != nil {
		return servers.Nodes{}, err
	}
	st.onClose(func() { _ = c.Close() })
	return servers.Direct(c), nil
}
