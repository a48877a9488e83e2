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

// flame profiles this process while one caller locks and unlocks. If the system
// reports processor time, it goes on until the process has used 25 turns of it,
// because a second of processor time has only 100 samples.
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
		for began := time.Now(); err == nil && servers.OwnCPU()-used < turns*d &&
			time.Since(began) < patience*turns*d; {
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
