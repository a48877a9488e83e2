package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// However a sleep ends, the process's clock goes on with what it showed. When a
// crash or the end of another pause came first, the clock of a process that was
// awake went back at the end of the sleep, and that process took a healthy
// node's clock to have jumped.
func TestClocksOfProcessesNeverGoBack(t *testing.T) {
	for name, end := range map[string]func(p *world.Proc){
		"by itself": func(*world.Proc) {},
		"resumed":   (*world.Proc).Resume,
		"crashed": func(p *world.Proc) {
			p.Crash()
			p.Restart()
		},
		"twice": func(p *world.Proc) {
			p.Resume()
			p.Sleep(time.Second, true)
		},
	} {
		set := func(r *rand.Rand, s *course.Setting) { plain(r, s, 1); s.Length = 4*s.Guard + 4*s.TTL }
		g := generator{name: "sleep", set: set, plan: func(w *trial.Schedule) {
			p := w.Procs[0]
			highest := p.Now()
			w.At(500*time.Millisecond, func() { p.Sleep(time.Second, false) })
			w.At(700*time.Millisecond, func() { end(p) })
			for i := range 400 {
				w.At(time.Duration(i)*10*time.Millisecond, func() {
					if now := p.Now(); p.Paused {
						return
					} else if now < highest {
						w.Fail("clock", "%s: the clock of process %s has gone back by %v", name, p.Name, highest.Sub(now))
					} else {
						highest = now
					}
				})
			}
		}}
		if v, stats := run(g, 1, nil, nil); v != nil {
			t.Error(v)
		} else if stats.Sleeps == 0 {
			t.Errorf("%s: no process slept", name)
		}
	}
}
