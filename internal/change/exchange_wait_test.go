package change_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/protocol"
)

// exchangeWait is how long Jointly lasts at least with the guard time of setOf:
// a clock may be 2 % slow.
const exchangeWait = 20*time.Second + 20*time.Second/50

// staysSaved: a member that would come back as it was before counts for the
// wait when it has a newer file.
func staysSaved(t assert.TestingT) {
	joint := change.Join(change.Begin(setOf(1, "A", "B", "C"), entering("D", "C"), ballot(2)), ballot(3))
	e := change.Exchange{}
	e.Decided(joint)
	for range 3 {
		for i := range joint.Members {
			e.Moved(1, 1, i, i > 1)
			e.Looked(i, true, true)
		}
	}
	assert.False(t, e.Next(protocol.Time(2*exchangeWait)), "of A, B and C only C has it on disk")
}

func TestAMajorityHasItsMoveOnDisk(t *testing.T) {
	t.Parallel()
	staysSaved(t)
	learning := change.Begin(setOf(1, "A", "B", "C"), entering("D", "C"), ballot(2))
	e := decided(change.Exchange{}, 1, learning)
	assert.False(t, e.Saves(0), "the old set still counts")
	e.Decided(change.Join(learning, ballot(3)))
	assert.True(t, e.Saves(0))
	assert.False(t, e.Saves(3), "D enters")
	serve(e, 3, 0, 1)
	assert.False(t, e.Saves(0), "the wait has begun")
}

// A majority that serves the configuration at one moment serves it for good.
// One that was seen one by one may not.
func staysMoved(t assert.TestingT) {
	joint := change.Join(change.Begin(setOf(1, "A", "B", "C"), entering("D", "C"), ballot(2)), ballot(3))
	e := decided(change.Exchange{}, 1, joint)
	for i := range joint.Members {
		e.Looked(i, true, true)
	}
	at := func(d time.Duration) protocol.Time { return protocol.Time(1).Add(d) }
	e.Moved(at(time.Second), at(0), 0, true)
	e.Moved(at(2*time.Second), at(time.Second), 1, true)
	e.Moved(at(3*time.Second), at(time.Second), 1, true)
	e.Moved(at(3*time.Second), at(2*time.Second), 1, true)
	e.Moved(at(3*time.Second), at(2*time.Second), 3, true)
	assert.False(t, e.Next(at(3*exchangeWait)), "A was asked before B had moved")
}

func TestAMajorityServesAtOneMoment(t *testing.T) {
	t.Parallel()
	staysMoved(t)
	e := decided(change.Exchange{},
		1, change.Join(change.Begin(setOf(1, "A", "B", "C"), entering("D", "C"), ballot(2)), ballot(3)), 0, 1, 3)
	for i := range 4 {
		e.Looked(i, true, true)
	}
	assert.True(t, e.Next(protocol.Time(3*exchangeWait)))
}

// The wait begins when a majority of the old set has moved, whatever the
// new nodes do, and later moves prolong nothing.
func TestTheWaitBeginsWithTheSetOfBefore(t *testing.T) {
	t.Parallel()
	joint := change.Join(change.Begin(setOf(1, "A", "B", "C"), entering("DEF", "ABC"), ballot(2)), ballot(3))
	const now = protocol.Time(time.Hour)
	e := decided(change.Exchange{}, now, joint, 3, 4, 5)
	for i := range joint.Members {
		e.Looked(i, true, true)
	}
	at := func(d time.Duration) protocol.Time { return now.Add(d) }
	assert.False(t, e.Next(at(2*exchangeWait)), "A, B and C may admit a claim by themselves")
	assert.Equal(t, exchangeWait, e.Left(at(2*exchangeWait)))
	e.Moved(at(0), at(0), 0, true)
	e.Moved(at(time.Second), at(0), 1, true)
	serve(e, at(2*time.Second), 0, 1)
	serve(e, at(3*time.Second), 2)
	assert.Equal(t, exchangeWait-time.Second, e.Left(at(3*time.Second)))
	assert.False(t, e.Next(at(exchangeWait+time.Second)))
	assert.True(t, e.Next(at(exchangeWait+2*time.Second)))
	assert.Zero(t, e.Left(at(3*exchangeWait)))

	e.Decided(change.Finish(joint, ballot(4)))
	for i := range 3 {
		e.Moved(now, now, i, true)
		e.Looked(i, true, true)
	}
	assert.False(t, e.Next(at(2*exchangeWait)), "nothing is under way")
	assert.Equal(t, exchangeWait, e.Left(at(exchangeWait)))

	learning := decided(change.Exchange{}, now,
		change.Begin(setOf(1, "A", "B", "C"), entering("D", "C"), ballot(2)), 0, 1)
	assert.Equal(t, exchangeWait, learning.Left(at(time.Second)), "it has not begun while D learns")
}

// The clocks of two nodes may differ by the skew: a claim at old nodes may
// have a ticket ahead of ours by it, and one at new nodes a ticket behind. With
// a skew of 300 ms the wait is 600 ms longer, whatever is changed meanwhile.
func TestTheWaitHasTwiceTheSkew(t *testing.T) {
	t.Parallel()
	const skew = 300 * time.Millisecond
	set := setOf(1, "A", "B", "C")
	set.Now.Skew, set.Next.Skew = skew, skew
	joint := change.Join(change.Begin(set, entering("DEF", "ABC"), ballot(2)), ballot(3))
	const now = protocol.Time(time.Hour)
	e := decided(change.Exchange{}, now, joint, 3, 4, 5)
	for i := range joint.Members {
		e.Moved(now, now, i, true)
		e.Looked(i, true, true)
	}
	serve(e, now, 0, 1, 2)
	assert.Equal(t, exchangeWait+2*skew, e.Left(now))
	assert.False(t, e.Next(now.Add(exchangeWait+2*skew-1)))
	assert.True(t, e.Next(now.Add(exchangeWait+2*skew)))
}
