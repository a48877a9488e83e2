package transport

// How many unanswered commands a connection may have: enough to keep the node
// busy, and no more than the node answers in time.

import "time"

// window bounds how many commands a connection has unanswered. It adapts to the
// node: as long as the node answers within rtt plus half a node timeout, the
// window grows.
type window struct {
	size int
	rtt  time.Duration // the quickest answer measured; 0: none yet
	cut  time.Duration // when the window last shrank, since Ordered.epoch
}

// unit is how many bytes of a non-urgent command count as one command. So a few
// long commands fill the window, and an urgent command, which is short, never
// waits behind many bytes. Ordinary commands are shorter than unit.
const unit = 1 << 10

const (
	firstWindow = 4096 // 30 to 80 ms of a node's time
	leastWindow = 128
	mostWindow  = 16384
)

// took adjusts the window after n commands were answered that had been
// unanswered for age. full says that the window was full: otherwise the answer
// says nothing about a larger window.
func (w *window) took(age, now, nodeTimeout time.Duration, n int, full bool) {
	switch {
	case age > w.rtt+nodeTimeout/2:
		if now-w.cut > age { // commands sent before the last cut say nothing about the new size
			w.size, w.cut = max(w.size*3/4, leastWindow), now
		}
	case full:
		w.size = min(w.size+(n+3)/4, mostWindow)
	}
}

// bound lowers rtt to age, the time that a command was unanswered: no answer is
// quicker than the round trip.
func (w *window) bound(age time.Duration) {
	if w.rtt == 0 || age < w.rtt {
		w.rtt = age
	}
}

// room is how many commands may be unanswered before this one must wait. A
// quarter more is reserved for urgent commands, so that they need not wait
// behind others.
func (w *window) room(urgent bool) int {
	if urgent {
		return w.size + w.size/4
	}
	return w.size
}
