package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

// A node whose clock is in doubt is in doubt until the longest lease has ended
// that any client may have there, and for as long as that is not known.
func TestDoubtLastsForTheLongestLease(t *testing.T) {
	t.Parallel()
	const guard, longest = 2 * time.Second, time.Minute
	at := func(d time.Duration) protocol.Time { return protocol.Time(time.Hour).Add(d) }
	c := protocol.NewClocks([]*protocol.ClockBounds{new(protocol.ClockBounds)}, 200*time.Millisecond, guard)
	read := func(d, off time.Duration) (counts bool) {
		return c.Read(0, protocol.Reading{Sent: at(d), Received: at(d + time.Millisecond), Millis: (time.Hour + d + off).Milliseconds()})
	}
	asks := func() (n int) {
		for _, e := range c.Out {
			if e.Kind == protocol.ClockGuard {
				n++
			}
		}
		c.Out = nil
		return n
	}
	assert.True(t, read(0, 0))
	assert.False(t, read(100*time.Millisecond, 500*time.Millisecond))
	assert.Equal(t, 1, asks())
	c.Tick(at(time.Second))
	c.Out = nil
	assert.Equal(t, protocol.Never, c.Wake(), "only an answer can end it")
	assert.False(t, read(10*time.Second, 500*time.Millisecond), "long after half of this client's guard time")
	assert.Equal(t, 1, asks(), "the answer may have been lost")
	c.Guard(at(11*time.Second), 0, longest)
	assert.False(t, read(29*time.Second, 500*time.Millisecond))
	assert.Zero(t, asks())
	assert.True(t, c.Open())
	c.Tick(at(31 * time.Second))
	assert.False(t, c.Open())
	assert.True(t, read(32*time.Second, 500*time.Millisecond))
}
