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

// bench is one thing that is measured: by each of its sides, in turns.
type bench struct {
	Name   string
	Group  string   // the table that it is a row of
	Series string   // the plots that it is a point of, at X
	X      float64  // what grows in the series
	Title  string   // what is measured, in words
	Show   []string // the figures that count: the rows of the table
	open   func(ctx context.Context, st *stage) error
}

// stage is a bench set up: servers that run, sides that are connected.
type stage struct {
	libs    *regexp.Regexp // those that take part
	sides   []side
	stretch float64 // turns are so many times as long as others; 0: once
	single  bool    // one turn without a warm-up: what it finds is a size, and depends on no scheduler
	ends    []func()

	// What is drawn in addition to the figures; nil: nothing. It takes several
	// times d.
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

// start starts n servers for as long as the stage stands.
func (st *stage) start(n int) (servers.Nodes, error) {
	c, err := redistest.Run(n)
	if err != nil {
		return servers.Nodes{}, err
	}
	st.onClose(func() { _ = c.Close() })
	return servers.Direct(c), nil
}
