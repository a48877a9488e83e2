package process

import (
	"github.com/quorate/quorate/internal/protocol"
	"slices"
)

// This file owns the order in which the callers of one process are served.
// Invariant: the caller that has waited for longest is next. Unlike with
// sync.Mutex there is nothing to gain from overtaking: a turn costs a round
// trip.

// line is the callers of a local queue that wait, first come first served. A
// queue that empties keeps its room, so that callers that wait one after the
// other cost nothing.
type line[C comparable] struct {
	callers []inLine[C] // those before head have gone
	head    int
}

type inLine[C comparable] struct {
	caller C
	mode   Mode
}

func (l *line[C]) size() int { return len(l.callers) - l.head }

func (l *line[C]) first() *inLine[C] { return &l.callers[l.head] }

// push adds a caller at the end. It reuses the room of callers that have gone
// once they are more than half of it, so a line that never empties does not
// grow without end.
func (l *line[C]) push(c inLine[C]) {
	if len(l.callers) == cap(l.callers) && l.head > len(l.callers)/2 {
		n := copy(l.callers, l.callers[l.head:])
		clear(l.callers[n:])
		l.callers, l.head = l.callers[:n], 0
	}
	l.callers = append(l.callers, c)
}

func (l *line[C]) pop(rules protocol.Rules) (c inLine[C]) {
	if !rules.On(protocol.RuleFirst) {
		c = l.callers[len(l.callers)-1]
		l.callers = l.callers[:len(l.callers)-1]
		l.tidy()
		return c
	}
	c, l.callers[l.head] = l.callers[l.head], c
	l.head++
	l.tidy()
	return c
}

// remove takes a caller out, and reports whether it was there.
func (l *line[C]) remove(c C) bool {
	for i := l.head; i < len(l.callers); i++ {
		if l.callers[i].caller == c {
			l.callers = slices.Delete(l.callers, i, i+1)
			l.tidy()
			return true
		}
	}
	return false
}

// roomKept is how much room an empty line keeps: 64 callers, 1 KiB. A burst of
// thousands must not cost a process that memory for as long as it lives.
const roomKept = 64

// tidy makes an empty line begin at the front again.
func (l *line[C]) tidy() {
	if l.head < len(l.callers) {
		return
	}
	if l.callers, l.head = l.callers[:0], 0; cap(l.callers) > roomKept {
		l.callers = nil
	}
}
