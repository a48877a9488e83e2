package sim

import (
	"testing"
	"time"
)

// However a sleep ends, the process's clock goes on with what it showed. When a
// crash or the end of another pause came first, the clock of a process that was
// awake went back at the end of the sleep, and that process took a healthy
// node's clock to have jumped.
func TestClocksOfProcessesNeverGoBack(t *testing.T) {
	for name, end := range map[string]func(p *proc){
		"by itself": func(*proc) {},
		"resumed":   (*proc).resume,
		"crashed": func(p *proc) {
			p.crash()
			p.restart()
		},
		"twice": func(p *proc) {
			p.resume()
			p.sleep(time.Second, true)
		},
	} {
		g := generator{name: "sleep", set: nap.set, plan: func(w *world) {
			p := w.procs[0]
			highest := p.local(w.now)
			w.at(500*time.Millisecond, func() { p.sleep(time.Second, false) })
			w.at(700*time.Millisecond, func() { end(p) })
			for i := range 400 {
				w.at(time.Duration(i)*10*time.Millisecond, func() {
					if now := p.local(w.now); p.paused {
						return
					} else if now < highest {
						w.fail("clock", "%s: the clock of process %s has gone back by %v", name, p.name, highest.Sub(now))
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
