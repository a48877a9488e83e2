// Package conformance compares the scripts on a Redis, or on a server that
// claims to be one, with the reference node: the same random requests must get
// the same answers and cause the same pushes, in the same order.
package conformance

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quorate/quorate/internal/script"
)

// Run runs the sequences and reports the first few that differ.
//
// On a wall clock, it is not known to the millisecond when a script ran. So the
// model gets the node's TIME from just before. A sequence that comes near a
// moment at which something expires is abandoned and replaced by another one.
// On a busy machine, most sequences come near such a moment.
func Run(t testing.TB, cfg Config) {
	t.Helper()
	if cfg.Steps == 0 {
		cfg.Steps = 40
	}
	ctx := context.Background()
	for _, s := range script.All() {
		if err := cfg.Client.ScriptLoad(ctx, s.Source).Err(); err != nil {
			t.Fatalf("loading %s: %v", s.Name, err)
		}
	}
	// Only sleepers gain from company, and a clock that we move cannot be
	// shared.
	workers := 1
	if cfg.Advance == nil {
		workers = 4
	}
	var (
		wg                                   sync.WaitGroup
		next, failed, abandoned, done, mixed atomic.Int64
	)
	for w := range workers {
		wg.Go(func() {
			p, err := newPushes(ctx, cfg.Client, fmt.Sprintf("conformance %d-%d", cfg.Seed, w))
			if err != nil {
				t.Error(err)
				return
			}
			defer p.close()
			for failed.Load() < 3 {
				i := uint64(next.Add(1) - 1)
				if i >= uint64(min(int64(cfg.Sequences)+abandoned.Load(), 8*int64(cfg.Sequences))) {
					return
				}
				s := newSequence(cfg, p, cfg.Seed+i)
				err := s.run(ctx)
				done.Add(int64(s.done))
				mixed.Add(int64(s.mixed))
				switch {
				case err == errNear:
					abandoned.Add(1)
				case err != nil:
					failed.Add(1)
					t.Errorf("seed %d: %v\n%s", cfg.Seed+i, err, s.log)
				}
			}
		})
	}
	wg.Wait()
	if done.Load() < int64(cfg.Sequences)/4 {
		t.Errorf("only %d parts of requests of many were done", done.Load())
	}
	if mixed.Load() < int64(cfg.Sequences)/100 {
		t.Errorf("only %d requests of many did something for two claims", mixed.Load())
	}
	judged := min(next.Load(), int64(cfg.Sequences)+abandoned.Load()) - abandoned.Load()
	if judged < int64(cfg.Sequences)/2 && failed.Load() == 0 {
		t.Errorf("only %d of %d sequences were judged: the others came too near an expiry", judged, cfg.Sequences)
	}
	if a := abandoned.Load(); a > 0 {
		t.Logf("%d sequences came too near an expiry to be judged, and others took their place", a)
	}
}
