package main

import (
	"bytes"
	"context"
	"runtime/pprof"
	"time"

	"github.com/google/pprof/profile"

	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
)

// The profile from which a flame graph is drawn.

// flame profiles this process, in which one caller locks and unlocks. It goes
// on until that has used so many turns of processor time, where the system
// tells, for there are 100 samples in a second of it.
func (s scenario) flame(ctx context.Context, n servers.Nodes, d time.Duration) ([]report.Frame, error) {
	const turns, patience = 25, 4
	t, err := assemble(ctx, libraries.Of(s.Job)[0], s, n)
	if err != nil {
		return nil, err
	}
	defer t.close()
	var out bytes.Buffer
	if err := pprof.StartCPUProfile(&out); err != nil {
		return nil, err
	}
	used := servers.OwnCPU()
	t.each(func(i int, m libraries.Locker) {
		for began := time.Now(); err == nil && servers.OwnCPU()-used < turns*d && time.Since(began) < patience*turns*d; {
			_, err = t.client(ctx, m, t.guards[i], time.Now().Add(d))
		}
	})
	pprof.StopCPUProfile()
	if err != nil {
		return nil, err
	}
	p, err := profile.Parse(&out)
	if err != nil {
		return nil, err
	}
	return report.FlameOf(p), nil
}
