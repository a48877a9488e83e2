package transport

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A writer whose yields took long yields less and less often, until one was
// short again.
func TestYieldBackoff(t *testing.T) {
	t.Parallel()
	var y yieldBackoff
	now := time.Now()
	y.took(now, shortTurn)
	assert.True(t, y.not.IsZero(), "the next time, too")
	// Tenths of a second.
	for _, pause := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600} {
		y.took(now, 240*time.Millisecond)
		assert.Equal(t, now.Add(240*time.Millisecond+pause*time.Second/10), y.not)
		now = y.not
	}
	not := y.not
	y.yield()
	assert.Equal(t, not, y.not, "it is not time yet")
	y.took(now, time.Microsecond)
	y.took(now, time.Second)
	assert.Equal(t, now.Add(1100*time.Millisecond), y.not, "from the beginning")
}

// A node that has seemed to be far away is not any more once any answer comes
// sooner.
func TestAnyAnswerBoundsTheWay(t *testing.T) {
	t.Parallel()
	l, c := &Ordered{epoch: time.Now()}, &conn{pending: 7}
	c.window.rtt = time.Hour
	l.answered(c, entry{at: l.now()})
	assert.Less(t, c.window.rtt, time.Minute)
	c.window.rtt = farAway - 1
	l.answered(c, entry{at: l.now()})
	assert.Equal(t, farAway-1, c.window.rtt, "what is near is measured by commands that are alone")
}
