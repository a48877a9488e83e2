package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// A reading shows that the clock of a node was set ahead by an hour. Another
// goroutine has a push with the vote of that node, and judges it before the
// event of that reading is over: the bounds are those of the new clock already,
// but the node is in doubt.
func TestPushOfANodeWhoseClockHasJustJumped(t *testing.T) {
	t.Parallel()
	c := NewClient(ClientConfig{Nodes: 3, TTL: time.Second, NodeTimeout: time.Second, Guard: 3 * time.Second})
	now := protocol.Time(time.Second)
	reading := func(ahead time.Duration) nodeset.Reading {
		now += 1000
		return nodeset.Reading{Sent: now - 500, Received: now, Micros: (int64(now) + int64(ahead)) / 1000}
	}
	for i := range 3 {
		c.Connect(now, i, time.Millisecond)
		c.Show(now, i, protocol.Incarnation(i+1))
		c.Time(i, reading(0))
		c.Up(now, i)
	}
	assert.True(t, c.within(0, reading(0)))

	c.mu.Lock()
	assert.Equal(t, protocol.Parted, c.read(0, reading(time.Hour)))
	push := reading(time.Hour)
	push.Push = true
	assert.False(t, c.within(0, push))
	c.unlock(now)
	assert.False(t, c.within(0, push))
}
