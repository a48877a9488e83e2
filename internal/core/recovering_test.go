package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

// The log says once per episode that nodes recover. Neither an answer that
// is late nor a node that falls silent makes two of one.
func TestEpisodeOutlastsLateAnswers(t *testing.T) {
	now := time.Now()
	var r recovering
	note := func(node int, wait time.Duration) (out uint32) {
		a := protocol.Answer{Status: protocol.OK, Wait: wait}
		if wait > 0 {
			a.Status = protocol.Recovering
		}
		_, out, _ = r.note(protocol.Majority(3), node, a, now)
		return out
	}
	assert.Zero(t, note(0, time.Second), "two of three can vote")
	assert.Equal(t, uint32(0b11), note(1, time.Second))

	now = now.Add(time.Second)
	assert.Zero(t, note(2, 0))
	note(0, 3*time.Millisecond)
	assert.Zero(t, note(1, 3*time.Millisecond), "an answer that was late is not a second episode")

	note(0, 0) // it votes, so there is a quorum
	note(1, 0)
	note(0, time.Second)
	assert.NotZero(t, note(1, time.Second), "it lost its data again")

	now = now.Add(time.Second + lateAnswers)
	note(2, 0) // neither has answered since: they do not count any more
	note(0, time.Second)
	assert.NotZero(t, note(1, time.Second))
}

// While two sets count, a quorum is a majority of each.
func TestTwoSetsRecover(t *testing.T) {
	both := protocol.Joint(0b00111, 0b11001)
	for nodes, possible := range map[uint32]bool{0b00110: false, 0b10001: false, 0b00100: true, 0b10010: true} {
		var r recovering
		var out uint32
		for i := range 5 {
			if nodes&(1<<i) != 0 {
				_, out, _ = r.note(both, i, protocol.Answer{Status: protocol.Recovering, Wait: time.Minute}, time.Now())
			}
		}
		assert.Equal(t, possible, out == 0, "%b", nodes)
	}
}
