package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

// A node 1e12 ms ahead of us answers requests; in each row, after all rows before it.
func TestNarrow(t *testing.T) {
	const ms = protocol.Time(time.Millisecond)
	var c clock
	for _, r := range []struct {
		what        string
		sent, heard protocol.Time
		ahead       int64
		jump        time.Duration
	}{
		{"the first answer", 100 * ms, 140 * ms, 1e12 + 10, 0},
		{"within the round trip", 200 * ms, 240 * ms, 1e12 + 30, 0},
		{"a quick answer narrows", 300 * ms, 302 * ms, 1e12 + 1, 0},
		{"as quick, 20 ms later", 302 * ms, 304 * ms, 1e12 + 21, 17 * time.Millisecond},
		{"and 20 ms earlier", 302 * ms, 304 * ms, 1e12 - 19, -17 * time.Millisecond},
		{"neither has moved the bounds", 304 * ms, 306 * ms, 1e12 + 1, 0},
		{"a slow answer says less", 302 * ms, 332 * ms, 1e12 + 21, 0},
		{"in a second, a clock may gain 20 ms", 1330 * ms, 1332 * ms, 1e12 + 21, 0},
		{"but no more", 2330 * ms, 2332 * ms, 1e12 + 61, 37 * time.Millisecond},
		{"and may lose as much", 2330 * ms, 2332 * ms, 1e12 + 1, 0},
	} {
		got := c.narrow(r.sent, r.heard, r.ahead+int64(r.sent/ms)+1)
		assert.InDelta(t, r.jump, got, float64(3*time.Millisecond), r.what)
		assert.Equal(t, r.jump == 0, got == 0, "%s: %v", r.what, got)
	}
	assert.False(t, c.ahead(2400*ms, 1e12+2400+3), "a push may have been on its way for long")
	assert.False(t, c.ahead(2400*ms, 1e12))
	assert.True(t, c.ahead(2400*ms, 1e12+2400+50))
	c.forget()
	assert.False(t, c.ahead(2400*ms, 1e12+2400+50))
	assert.Zero(t, c.narrow(2400*ms, 2402*ms, 5), "the next answer sets the bounds anew")
}
