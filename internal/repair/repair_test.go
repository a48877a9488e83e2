package repair

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const repairGuard = time.Minute

// steps returns what the machine wants done, and that it wants nothing else.
func steps(t *testing.T, r *Repair, kinds ...RepairKind) []RepairStep {
	t.Helper()
	out := r.Out
	r.Out = nil
	var got []RepairKind
	for _, s := range out {
		got = append(got, s.Kind)
	}
	require.Equal(t, kinds, got)
	return out
}

// newRepair returns a machine for three connected nodes, of which node 0 is
// looked at.
func newRepair(t *testing.T) (*Repair, RepairStep) {
	t.Helper()
	r := NewRepair(3, 200*time.Millisecond, repairGuard, 1)
	for i := range 3 {
		r.Up(1, i)
	}
	looks := steps(t, r, RepairLook, RepairLook, RepairLook)
	for _, s := range looks[1:] {
		r.Done(1, s, RepairResult{Incarnation: 7, CaughtUp: true})
	}
	require.True(t, r.Attempted(1))
	r.nodes[0].hurried = false // the other nodes had come up first
	return r, looks[0]
}

// list brings the machine to the portion of names of node 1.
func list(t *testing.T, r *Repair, look RepairStep) RepairStep {
	t.Helper()
	r.Done(1, look, RepairResult{Incarnation: 5})
	r.Done(1, steps(t, r, RepairTurn)[0], RepairResult{OK: true})
	for _, s := range steps(t, r, RepairLook, RepairLook) {
		r.Done(1, s, RepairResult{Incarnation: 7, CaughtUp: true})
	}
	return steps(t, r, RepairList)[0]
}

// Names are listed once the node's guard time is over, and not before.
func TestRepairWaitsForTheGuardTime(t *testing.T) {
	r, look := newRepair(t)
	r.Done(1, look, RepairResult{Incarnation: 5, Wait: repairGuard / 2})
	steps(t, r)
	require.True(t, r.Attempted(0), "no caller waits for a guard time")
	require.GreaterOrEqual(t, r.Wake(), protocol.Time(1).Add(repairGuard/2))
	r.Tick(r.Wake())
	look = steps(t, r, RepairLook)[0]
	r.Done(1, look, RepairResult{Incarnation: 5})
	steps(t, r, RepairTurn)
}

// A guard time that is ended while the node is looked at is not waited for,
// though the answer to the look tells of it.
func TestRepairThatIsHurriedWhileItLooks(t *testing.T) {
	r, look := newRepair(t)
	r.Hurry(1)
	steps(t, r)
	r.Done(1, look, RepairResult{Incarnation: 5, Wait: repairGuard / 2})
	at := r.Wake()
	require.Less(t, at, protocol.Time(1).Add(time.Second))
	r.Tick(at)
	look = steps(t, r, RepairLook)[0]
	r.Done(at, look, RepairResult{Incarnation: 5, Wait: repairGuard / 2})
	require.GreaterOrEqual(t, r.Wake(), at.Add(repairGuard/2), "it has not been ended")
}

// A node is marked in the incarnation in which it was brought all names. A name
// that is not decided is decided once, and comes after the others.
func TestRepairBringsAllNames(t *testing.T) {
	r, look := newRepair(t)
	s := list(t, r, look)
	assert.Equal(t, 1, s.Node)
	r.Done(1, s, RepairResult{Names: []string{"b", "a"}, Cursor: "9"})
	s = steps(t, r, RepairList)[0]
	assert.Equal(t, "9", s.Cursor)
	r.Done(1, s, RepairResult{Names: []string{"a"}, Cursor: "0"})
	r.Done(1, steps(t, r, RepairLook)[0], RepairResult{Incarnation: 7, CaughtUp: true})
	r.Done(1, steps(t, r, RepairList)[0], RepairResult{Cursor: "0"})
	r.Done(1, steps(t, r, RepairLook)[0], RepairResult{Incarnation: 7, CaughtUp: true})
	reads := steps(t, r, RepairRead, RepairRead)
	r.Done(1, reads[0], RepairResult{Outcome: lease.Inconclusive})
	r.Done(1, reads[1], RepairResult{Outcome: lease.Settled})
	r.Done(1, steps(t, r, RepairDecide)[0], RepairResult{OK: true})
	r.Done(1, steps(t, r, RepairRead)[0], RepairResult{Outcome: lease.Inconclusive})
	out := steps(t, r, RepairYield, RepairFailed)
	require.ErrorIs(t, out[1].Err, ErrUndecided)

	r.Tick(r.Wake())
	r.Done(1, steps(t, r, RepairLook)[0], RepairResult{Incarnation: 5})
	r.Done(1, steps(t, r, RepairTurn)[0], RepairResult{OK: true})
	read := steps(t, r, RepairRead)[0]
	assert.Equal(t, "a", read.Name, "b has been brought")
	r.Done(1, read, RepairResult{Outcome: lease.Settled})
	mark := steps(t, r, RepairMark)[0]
	assert.Equal(t, protocol.Incarnation(5), mark.Incarnation)
	r.Done(1, mark, RepairResult{OK: true})
	out = steps(t, r, RepairDone, RepairYield)
	assert.Equal(t, 2, out[0].Count)
	assert.Equal(t, protocol.Never, r.Wake())
}

// The next attempt comes later each time, and an operator hears of it once.
func TestRepairBacksOff(t *testing.T) {
	r, s := newRepair(t)
	warned, now, last := 0, protocol.Time(1), time.Duration(0)
	for range 2 * quietAttempts {
		r.Done(now, s, RepairResult{Err: errors.New("down")})
		for _, o := range steps(t, r, RepairFailed) {
			if o.Warn {
				warned++
			}
		}
		last = r.Wake().Sub(now)
		require.LessOrEqual(t, last, repairGuard/2)
		now = r.Wake()
		r.Tick(now)
		s = steps(t, r, RepairLook)[0]
	}
	assert.Equal(t, 1, warned)
	r.Done(now, s, RepairResult{Err: errors.New("down")})
	steps(t, r, RepairFailed)
	r.Up(now, 1) // which may have been missing
	steps(t, r, RepairLook, RepairLook)
}

// Nothing follows a connection's end until the next one, and the turn is given
// up.
func TestRepairEndsWithTheConnection(t *testing.T) {
	r, look := newRepair(t)
	s := list(t, r, look)
	r.Down(1, 0)
	steps(t, r)
	r.Done(1, s, RepairResult{Names: []string{"a"}, Cursor: "0"})
	steps(t, r, RepairYield)
	assert.Equal(t, protocol.Never, r.Wake())
	r.Look(1, 0)
	steps(t, r)
	r.Up(1, 0)
	steps(t, r, RepairLook)
}

// A node whose cursor never returns to 0 neither fills the memory nor keeps the
// client busy, whether it lists names or none.
func TestEndlessList(t *testing.T) {
	for _, count := range []int{1000, 0} {
		r, look := newRepair(t)
		s := list(t, r, look)
		portions := 0
		for ; s.Kind == RepairList && s.Node == 1; portions++ {
			names := make([]string, count)
			for i := range names {
				names[i] = fmt.Sprintf("%d-%d%900d}", portions, i, 0)
			}
			r.Done(1, s, RepairResult{Names: names, Cursor: "7"})
			s, r.Out = r.Out[0], nil
		}
		assert.LessOrEqual(t, portions*count, 200_000)
		assert.LessOrEqual(t, portions, maxPortions)
	}
}

// A node that loses its data after it was seen to be caught up is looked at
// once more.
func TestRepairLooksOnceMore(t *testing.T) {
	r, look := newRepair(t)
	r.Look(1, 0)
	steps(t, r)
	r.Done(1, look, RepairResult{Incarnation: 5, CaughtUp: true})
	steps(t, r, RepairLook)
}
