package judge

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/stretchr/testify/assert"
)

func TestRounds(t *testing.T) {
	ask := func(op, value string, call, begin int64) *Operation {
		return &Operation{Op: op, Kind: "once", Name: "once-0", Round: "once-0-1",
			Call: call, Begin: begin, Value: value}
	}
	run := func(op, of string, token uint64, from, done int64) *Operation {
		o := held(op, 1, token, from, done)
		o.Name, o.Kind, o.After, o.Done = "once-0-1", record.Runs, of, done
		return o
	}
	var once OnceStats
	judge := func(told []Sighting, ops ...*Operation) int {
		h := &History{Ops: ops, ByOp: map[string]*Operation{}, Told: told}
		for _, o := range ops {
			h.ByOp[o.Op] = o
		}
		all := rounds(h)
		assert.Len(t, all, 1)
		once = OnceStats{}
		return len(all[0].check(h.ByOp, time.Minute, &once, &ModelStats{}))
	}
	a, first, late := ask("a", "r", 10, 130), run("r", "a", 5, 50, 100), ask("b", "r", 20, 140)
	assert.Zero(t, judge(nil, a, first, late))
	assert.Equal(t, OnceStats{Rounds: 1, Done: 1, Runs: 1, Completed: 1}, once)

	assert.Positive(t, judge(nil, a, first, ask("b", "r", 20, 99)), "told that it is done before it was")
	assert.Positive(t, judge(nil, a, late), "no client has run it")
	assert.Positive(t, judge(nil, a, first, ask("b", "s", 20, 140), run("s", "b", 6, 105, 120)), "two values")

	again := run("s", "c", 6, 125, 150)
	c := &Operation{Op: "c", Kind: "once", Name: "once-0", Round: "once-0-1", Call: 120, Failed: 160,
		Err: "done here, not recorded: lost"}
	assert.Positive(t, judge(nil, a, first, c, again), "run though it is done")

	before := run("s", "c", 4, 20, 40)
	assert.Zero(t, judge(nil, a, first, c, before), "no client knew that it was recorded")
	assert.Equal(t, 1, once.Repeated)
	c.Err = "no quorum"
	assert.Positive(t, judge(nil, a, first, c, before), "it has been done, and its caller got an error")
	c.Failed = 0
	assert.Zero(t, judge(nil, a, first, c, before), "its caller was killed")

	assert.Zero(t, judge([]Sighting{{Name: "once-0-1", From: 90, To: 120, Token: 5}}, a, first, late))
	assert.Positive(t, judge([]Sighting{{Name: "once-0-1", From: 10, To: 90, Token: 5}}, a, first, late),
		"not done yet")
	assert.Positive(t, judge([]Sighting{{Name: "once-0-1", From: 150, To: 160}}, a, first, late), "it is done")
	assert.Zero(t, judge([]Sighting{{Name: "once-0-1", From: 90, To: 120}}, a, first, late),
		"it is not known to be, yet")
}
