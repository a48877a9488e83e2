package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A client that asks gets no term that is over, and none that has not begun.
func TestMistaken(t *testing.T) {
	terms := []*operation{held("a", 1, 7, 100, 200), held("b", 1, 8, 210, 300)}
	told := func(token uint64, from, to int64) int {
		return len(mistaken(terms, []sighting{{From: from, To: to, Token: token}}))
	}
	assert.Zero(t, told(7, 100, 250), "the answer was under way as the next one began")
	assert.Equal(t, 1, told(7, 211, 250))
	assert.Zero(t, told(8, 150, 200))
	assert.Equal(t, 1, told(8, 150, 199), "the one before still leads")
}

func TestRounds(t *testing.T) {
	ask := func(op, value string, call, begin int64) *operation {
		return &operation{Op: op, Kind: "once", Name: "once-0", Round: "once-0-1", Call: call, Begin: begin, Value: value}
	}
	run := func(op, of string, token uint64, from, done int64) *operation {
		o := held(op, 1, token, from, done)
		o.Name, o.Kind, o.After, o.Done = "once-0-1", runs, of, done
		return o
	}
	var once onceStats
	judge := func(told []sighting, ops ...*operation) int {
		h := &history{Ops: ops, ByOp: map[string]*operation{}, Told: told}
		for _, o := range ops {
			h.ByOp[o.Op] = o
		}
		all := rounds(h)
		assert.Len(t, all, 1)
		once = onceStats{}
		return len(all[0].check(h.ByOp, time.Minute, &once, &modelStats{}))
	}
	a, first, late := ask("a", "r", 10, 130), run("r", "a", 5, 50, 100), ask("b", "r", 20, 140)
	assert.Zero(t, judge(nil, a, first, late))
	assert.Equal(t, onceStats{Rounds: 1, Done: 1, Runs: 1, Completed: 1}, once)

	assert.Positive(t, judge(nil, a, first, ask("b", "r", 20, 99)), "told that it is done before it was")
	assert.Positive(t, judge(nil, a, late), "no client has run it")
	assert.Positive(t, judge(nil, a, first, ask("b", "s", 20, 140), run("s", "b", 6, 105, 120)), "two values")

	again := run("s", "c", 6, 125, 150)
	c := &operation{Op: "c", Kind: "once", Name: "once-0", Round: "once-0-1", Call: 120, Failed: 160, Err: "done here, not recorded: lost"}
	assert.Positive(t, judge(nil, a, first, c, again), "run though it is done")

	before := run("s", "c", 4, 20, 40)
	assert.Zero(t, judge(nil, a, first, c, before), "no client knew that it was recorded")
	assert.Equal(t, 1, once.Repeated)
	c.Err = "no quorum"
	assert.Positive(t, judge(nil, a, first, c, before), "it has been done, and its caller got an error")
	c.Failed = 0
	assert.Zero(t, judge(nil, a, first, c, before), "its caller was killed")

	assert.Zero(t, judge([]sighting{{Name: "once-0-1", From: 90, To: 120, Token: 5}}, a, first, late))
	assert.Positive(t, judge([]sighting{{Name: "once-0-1", From: 10, To: 90, Token: 5}}, a, first, late), "not done yet")
	assert.Positive(t, judge([]sighting{{Name: "once-0-1", From: 150, To: 160}}, a, first, late), "it is done")
	assert.Zero(t, judge([]sighting{{Name: "once-0-1", From: 90, To: 120}}, a, first, late), "it is not known to be, yet")
}
