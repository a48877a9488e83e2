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
	note := func(node int, wait time.Duration) (int, string) {
		a := protocol.Answer{Status: protocol.OK, Wait: wait}
		if wait > 0 {
			a.Status = protocol.Recovering
		}
		_, out, _, text := r.note(3, node, a, now)
		return out, text
	}
	_, text := note(0, time.Second)
	assert.Empty(t, text, "two of three can vote")
	out, text := note(1, time.Second)
	assert.Equal(t, forgetfulNodes, text)
	assert.Equal(t, 2, out)

	now = now.Add(time.Second)
	_, text = note(2, 0)
	assert.Empty(t, text)
	note(0, 3*time.Millisecond)
	_, text = note(1, 3*time.Millisecond)
	assert.Empty(t, text, "an answer that was late is not a second episode")

	note(0, 0) // it votes, so there is a quorum
	note(1, 0)
	note(0, time.Second)
	_, text = note(1, time.Second)
	assert.Equal(t, forgetfulNodes, text, "it lost its data again")

	now = now.Add(time.Second + lateAnswers)
	note(2, 0) // neither has answered since: they do not count any more
	note(0, time.Second)
	_, text = note(1, time.Second)
	assert.Equal(t, forgetfulNodes, text)
}
