package transport

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const (
	ms          = time.Millisecond
	nodeTimeout = 200 * ms
)

// play has a node answer window after window; answer says how long n commands
// take it.
func play(w *window, rounds int, answer func(n int) time.Duration) {
	now := time.Duration(0)
	for range rounds {
		n := w.size
		age := answer(n)
		now += age
		for ; n > 0; n -= 32 {
			w.took(age, now, nodeTimeout, min(n, 32), true)
		}
	}
}

// A window settles where the node answers within half a node timeout, however
// slow it is.
func TestWindowOfASlowNode(t *testing.T) {
	t.Parallel()
	w := window{size: firstWindow}
	w.bound(ms)
	play(&w, 100, func(n int) time.Duration { return time.Duration(n) * 200 * time.Microsecond })
	assert.Less(t, w.size, 1000, "5,000 commands a second")
	assert.GreaterOrEqual(t, w.size, leastWindow)
	play(&w, 100, func(n int) time.Duration { return time.Duration(n) * time.Microsecond })
	assert.Equal(t, mostWindow, w.size, "the node is quick again")
}

// A node that is far away is not slow: its window opens though each answer
// takes long.
func TestWindowOfAFarNode(t *testing.T) {
	t.Parallel()
	w := window{size: firstWindow}
	w.bound(501 * ms)
	play(&w, 100, func(n int) time.Duration { return 500*ms + time.Duration(n)*time.Microsecond })
	assert.Equal(t, mostWindow, w.size)
}

// One late burst narrows the window once, however many answers belong to it.
func TestWindowIsCutOnceARoundTrip(t *testing.T) {
	t.Parallel()
	w := window{size: 4096, rtt: ms}
	for range 1000 {
		w.took(300*ms, 400*ms, nodeTimeout, 32, false)
	}
	assert.Equal(t, 3072, w.size)
	w.took(300*ms, 800*ms, nodeTimeout, 32, false)
	assert.Equal(t, 2304, w.size)
}

// Urgent commands have room when others have none.
func TestWindowHasRoomForUrgentCommands(t *testing.T) {
	t.Parallel()
	w := window{size: 1000}
	assert.Equal(t, 1000, w.room(false))
	assert.Equal(t, 1250, w.room(true))
}
