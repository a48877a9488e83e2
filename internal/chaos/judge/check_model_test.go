package judge

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/stretchr/testify/assert"
)

func TestFencedMutexModel(t *testing.T) {
	judge := func(ops []*Operation, log ...record.Access) int {
		var stats ModelStats
		found := linear(ops, 1, append([]record.Access{}, log...), time.Minute, &stats)
		assert.Zero(t, stats.Unknown)
		return len(found)
	}
	read := func(token uint64, at, value int64, ok bool) record.Access {
		return record.Access{Request: record.Request{What: record.DoRead, Name: "n", Token: token, Alone: true},
			At: at, Value: value, OK: ok}
	}
	write := func(token uint64, at, base, value int64, ok bool) record.Access {
		return record.Access{Request: record.Request{What: record.DoWrite, Name: "n", Token: token, Alone: true,
			Base: base}, At: at, Value: value, OK: ok}
	}
	a, b := held("a", 1, 1, 100, 200), held("b", 1, 2, 210, 300)
	assert.Zero(t, judge([]*Operation{a, b}, read(1, 110, 0, true), write(1, 120, 0, 0, true),
		read(2, 220, 1, true), write(2, 230, 1, 1, true)))
	assert.Zero(t, judge([]*Operation{a, b}, read(2, 220, 0, true), write(1, 230, 0, 0, false)),
		"a late write is refused")
	assert.Positive(t, judge([]*Operation{a, b}, read(1, 110, 0, true), read(2, 220, 0, true),
		write(1, 230, 0, 0, true)), "a late write is taken")
	assert.Positive(t, judge([]*Operation{a, b}, write(2, 230, 1, 0, true)), "an update is lost")
	assert.Positive(t, judge([]*Operation{a, held("b", 1, 1, 210, 300)}), "the same token twice")
	assert.Positive(t, judge([]*Operation{a, held("b", 1, 2, 150, 300)}), "two owners")
	waiting := held("b", 1, 2, 210, 300)
	waiting.Call = 50
	assert.Zero(t, judge([]*Operation{a, waiting}), "a waiter does not own")
	assert.Zero(t, judge([]*Operation{a, {Op: "x", Name: "n", Weight: 1, Call: 60}, b}),
		"a call without an answer")
	asleep := &Operation{Op: "a", Name: "n", Weight: 1, Token: 1, Call: 90, Begin: 105,
		Until: 20, End: 106, Lost: true}
	assert.Zero(t, judge([]*Operation{asleep, b}, read(1, 107, 0, true), read(2, 220, 0, true)))
	dead := &Operation{Op: "d", Name: "n", Weight: 1, Token: 1, Call: 90, Begin: 100, Until: 200}
	assert.Zero(t, judge([]*Operation{dead, b}), "a lease that was never released")
	assert.Positive(t, judge([]*Operation{dead, held("b", 1, 2, 190, 300)}))
}

func TestWeightedSemaphoreModel(t *testing.T) {
	judge := func(ops ...*Operation) int {
		return len(linear(ops, 4, nil, time.Minute, &ModelStats{}))
	}
	a, b := held("a", 3, 1, 100, 200), held("b", 1, 2, 110, 300)
	assert.Zero(t, judge(a, b, held("c", 3, 3, 205, 250)))
	assert.Positive(t, judge(a, b, held("c", 1, 3, 150, 160)))
}

// A part begins in the state in which the one before has ended.
func TestSplit(t *testing.T) {
	ops := []*Operation{held("a", 1, 7, 100, 200), held("b", 1, 6, 300, 400), held("c", 1, 8, 500, 600)}
	assert.Len(t, split(steps(ops)), 3)
	var stats ModelStats
	assert.Len(t, linear(ops, 1, []record.Access{}, time.Minute, &stats), 1)
	assert.Equal(t, ModelStats{Operations: 6, Histories: 3, Took: stats.Took}, stats)
	ops[1].Call = 150
	assert.Len(t, split(steps(ops)), 2)
}

// A lost update names the operation that wrote. Its client slept if its hold
// was over by then.
func TestOverwritten(t *testing.T) {
	l := record.LostUpdate{Access: record.Access{Request: record.Request{Op: "op", Token: 5}, At: 1000}}
	o := held("op", 1, 5, 1, 2)
	assert.Equal(t, []*Operation{o}, overwritten(l, map[string]*Operation{"op": o}).Ops)
	assert.True(t, Overslept(l, map[string]*Operation{"op": o}))
	o.Until = 1000
	assert.False(t, Overslept(l, map[string]*Operation{"op": o}))
}

// A number that changes while a claim holds the lock is reported.
func TestChangeUnderAReadLockIsReported(t *testing.T) {
	read := func(op string, value int64) record.Access {
		return record.Access{Request: record.Request{What: record.DoRead, Name: "n", Op: op}, Value: value,
			OK: true}
	}
	assert.Empty(t, torn([]record.Access{read("a", 1), read("b", 1), read("a", 1), read("b", 1)}))
	assert.Len(t, torn([]record.Access{read("a", 1), read("b", 1), read("a", 2)}), 1)
}
