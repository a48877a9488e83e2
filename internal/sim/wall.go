package sim

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a process does while a majority of the nodes contradicts
// its wall clock, and what is checked of that.

// wallAllowed is how far the process's wall clock may be from the nodes'
// clocks, 0 if it does not compare them.
func (p *proc) wallAllowed() time.Duration {
	if !p.w.walls {
		return 0
	}
	return protocol.WallAllowed(p.w.skew, p.guard(), p.ttl())
}

// refuse ends what waits for a claim, as core/wall.go does.
// Invariant: a process whose wall clock was never wrong makes claims, whatever
// the clocks of a minority of the nodes show.
func (p *proc) refuse(changed bool) {
	w := p.w
	if changed {
		w.say("%s makes no claims", p.label)
	}
	if w.wire == nil && !p.erred {
		w.fail("refused", "process %s makes no claims, and its wall clock is right", p.name)
	}
	for _, t := range p.parts {
		if a := t.att; a != nil {
			a.before()
			a.Refuse(p.now())
			a.after()
		}
	}
}

// say is a line of the output of a trace.
func (w *world) say(format string, args ...any) {
	w.log(format, args...)
	if w.wire != nil {
		w.wire.say(format, args...)
	}
}

// expectWall fails if the process is to know by now that its wall clock is
// wrong, or that it is right, and does not.
func (p *proc) expectWall(wrong bool) {
	if is := p.client.WallWrong() != nil; is != wrong {
		p.w.fail("refused", "process %s takes its wall clock for wrong: %t", p.name, is)
	}
}
