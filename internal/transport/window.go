package transport

// This file owns how much a connection takes: enough to keep the node busy, and
// no more than the node answers in time.

import "time"

// window bounds how many commands a connection has unanswered. It follows the
// node: what a node answers within rtt + half a node timeout is not too much
// for it.
type window struct {
	size int
	rtt  time.Duration // the quickest answer that was measured; 0: none yet
	cut  time.Duration // when the window was last made smaller, since Ordered.epoch
}

// unit is how many bytes of commands that are not urgent count as one command.
// So a few long ones fill the window, and an urgent one, which is short, is
// never far behind. A usual command is shorter.
const unit = 1 << 10

const (
	firstWindow = 4096 // 30 to 80 ms of a node's time
	leastWindow = 128
	mostWindow  = 16384
)

// took takes how long n commands, answered now, were unanswered. A window that
// was not full says nothing about a larger one.
func (w *window) took(age, now, nodeTimeout time.Duration, n int, full bool) {
	switch {
	case age > w.rtt+nodeTimeout/2:
		if now-w.cut > age { // what was sent before the last cut says nothing about it
			w.size, w.cut = max(w.size*3/4, leastWindow), now
		}
	case full:
		w.size = min(w.size+(n+3)/4, mostWindow)
	}
}

// bound takes how long a command was unanswered: no answer is quicker than the
// round trip.
func (w *window) bound(age time.Duration) {
	if w.rtt == 0 || age < w.rtt {
		w.rtt = age
	}
}

// room is the bound for a command. A quarter more is kept for the urgent ones,
// so that they need not wait behind those that are not.
func (w *window) room(urgent bool) int {
	if urgent {
		return w.size + w.size/4
	}
	return w.size
}
