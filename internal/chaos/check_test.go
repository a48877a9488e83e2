package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// held is a made-up operation that was answered at once.
func held(op string, weight int64, token uint64, from, to int64) *operation {
	return &operation{Op: op, Name: "n", Weight: weight, Token: token, Call: from - 5, Begin: from, Until: to + 100, End: to}
}

func TestOverlaps(t *testing.T) {
	a, b := held("a", 1, 1, 100, 200), held("b", 1, 2, 200, 300)
	assert.Empty(t, overlaps([]*operation{b, a}, 1), "one after the other")
	b.Begin = 199
	found := overlaps([]*operation{a, b}, 1)
	require.Len(t, found, 1)
	assert.Equal(t, []*operation{a, b}, found[0].Ops)
	assert.Empty(t, overlaps([]*operation{a, b}, 2))
	assert.Len(t, overlaps([]*operation{a, b, held("c", 2, 3, 150, 151)}, 2), 1, "weights are added up")
}

// A client that was killed or stopped is held to what it last knew.
func TestOverlapsOfTheDead(t *testing.T) {
	killed := &operation{Op: "a", Name: "n", Weight: 1, Call: 90, Begin: 100, Until: 200}
	assert.Len(t, overlaps([]*operation{killed, held("b", 1, 2, 199, 300)}, 1), 1)
	assert.Empty(t, overlaps([]*operation{killed, held("b", 1, 2, 200, 300)}, 1))
	stopped := &operation{Op: "a", Name: "n", Weight: 1, Call: 90, Begin: 100, Until: 200, End: 500}
	assert.Empty(t, overlaps([]*operation{stopped, held("b", 1, 2, 200, 300)}, 1), "it sees the end too late, but has not been promised more")
	early := &operation{Op: "a", Name: "n", Weight: 1, Call: 90, Begin: 100, Until: 0, Seen: 150, End: 180, Lost: true}
	assert.Empty(t, overlaps([]*operation{early, held("b", 1, 2, 150, 300)}, 1), "its validity was taken back at some time after it was last seen")
	assert.Len(t, overlaps([]*operation{early, held("b", 1, 2, 149, 300)}, 1), 1)
	asleep := &operation{Op: "a", Name: "n", Weight: 1, Call: 90, Begin: 250, Until: 200, End: 500}
	assert.Empty(t, overlaps([]*operation{asleep, held("b", 1, 2, 200, 300)}, 1), "its hold was over before it looked")
}

func TestFalling(t *testing.T) {
	const exclusive = 1 << 30
	a, b := held("a", 1, 7, 100, 200), held("b", 1, 8, 200, 300)
	assert.Empty(t, falling([]*operation{a, b}, 1))
	b.Token = 7
	assert.Len(t, falling([]*operation{a, b}, 1), 1, "the same token twice")
	b.Token = 6
	assert.Len(t, falling([]*operation{b, a}, 1), 1)
	assert.Empty(t, falling([]*operation{a, b}, 2), "they do not conflict")
	writer, reader := held("w", exclusive, 5, 10, 20), held("r", 1, 5, 20, 30)
	writer.Shrunk, reader.After = true, "w"
	assert.Empty(t, falling([]*operation{writer, reader}, exclusive))
	writer.Token = 6
	assert.Len(t, falling([]*operation{writer, reader}, exclusive), 1)
}

func TestFencedMutexModel(t *testing.T) {
	judge := func(ops []*operation, log ...access) int {
		var stats modelStats
		found := linear(ops, 1, append([]access{}, log...), time.Minute, &stats)
		assert.Zero(t, stats.Unknown)
		return len(found)
	}
	read := func(token uint64, at, value int64, ok bool) access {
		return access{request{doRead, "n", token, true, "", 0}, at, value, ok}
	}
	write := func(token uint64, at, base, value int64, ok bool) access {
		return access{request{doWrite, "n", token, true, "", base}, at, value, ok}
	}
	a, b := held("a", 1, 1, 100, 200), held("b", 1, 2, 210, 300)
	assert.Zero(t, judge([]*operation{a, b}, read(1, 110, 0, true), write(1, 120, 0, 0, true), read(2, 220, 1, true), write(2, 230, 1, 1, true)))
	assert.Zero(t, judge([]*operation{a, b}, read(2, 220, 0, true), write(1, 230, 0, 0, false)), "a late write is refused")
	assert.Positive(t, judge([]*operation{a, b}, read(1, 110, 0, true), read(2, 220, 0, true), write(1, 230, 0, 0, true)), "a late write is taken")
	assert.Positive(t, judge([]*operation{a, b}, write(2, 230, 1, 0, true)), "an update is lost")
	assert.Positive(t, judge([]*operation{a, held("b", 1, 1, 210, 300)}), "the same token twice")
	assert.Positive(t, judge([]*operation{a, held("b", 1, 2, 150, 300)}), "two owners")
	waiting := held("b", 1, 2, 210, 300)
	waiting.Call = 50
	assert.Zero(t, judge([]*operation{a, waiting}), "a waiter does not own")
	assert.Zero(t, judge([]*operation{a, {Op: "x", Name: "n", Weight: 1, Call: 60}, b}), "a call without an answer")
	asleep := &operation{Op: "a", Name: "n", Weight: 1, Token: 1, Call: 90, Begin: 105, Until: 20, End: 106, Lost: true}
	assert.Zero(t, judge([]*operation{asleep, b}, read(1, 107, 0, true), read(2, 220, 0, true)))
	dead := &operation{Op: "d", Name: "n", Weight: 1, Token: 1, Call: 90, Begin: 100, Until: 200}
	assert.Zero(t, judge([]*operation{dead, b}), "a lease that was never released")
	assert.Positive(t, judge([]*operation{dead, held("b", 1, 2, 190, 300)}))
}

func TestWeightedSemaphoreModel(t *testing.T) {
	judge := func(ops ...*operation) int {
		return len(linear(ops, 4, nil, time.Minute, &modelStats{}))
	}
	a, b := held("a", 3, 1, 100, 200), held("b", 1, 2, 110, 300)
	assert.Zero(t, judge(a, b, held("c", 3, 3, 205, 250)))
	assert.Positive(t, judge(a, b, held("c", 1, 3, 150, 160)))
}

// A part begins in the state in which the one before has ended.
func TestSplit(t *testing.T) {
	ops := []*operation{held("a", 1, 7, 100, 200), held("b", 1, 6, 300, 400), held("c", 1, 8, 500, 600)}
	assert.Len(t, split(steps(ops)), 3)
	var stats modelStats
	assert.Len(t, linear(ops, 1, []access{}, time.Minute, &stats), 1)
	assert.Equal(t, modelStats{Operations: 6, Histories: 3, Took: stats.Took}, stats)
	ops[1].Call = 150
	assert.Len(t, split(steps(ops)), 2)
}

func TestStarved(t *testing.T) {
	work := []judgedWork{{Kind: "rwmutex", Names: []string{"rwmutex-0", "rwmutex-1"}}}
	var good []*operation
	for _, name := range work[0].Names {
		good = append(good, &operation{Op: "c0.1.1", Name: name, Phase: allWell, Call: 1, Begin: 2})
	}
	var stats waitStats
	assert.Empty(t, starved(work, 1, time.Second, &history{Ops: good}, &stats))
	assert.Equal(t, time.Nanosecond, stats.Calm)
	assert.Len(t, starved(work, 1, time.Second, &history{Ops: good[1:]}, &stats), 1, "it did not get everything")
	late := &operation{Op: "c0.1.2", Name: "rwmutex-0", Phase: allWell, Call: 1, Begin: 2 + int64(time.Second)}
	refused := &operation{Op: "c0.1.3", Name: "rwmutex-0", Phase: allWell, Call: 1, Failed: 2, Err: "no quorum"}
	assert.Len(t, starved(work, 1, time.Second, &history{Ops: append(good, late, refused)}, &stats), 2)
	unheard := &operation{Op: "c0.1.4", Name: "rwmutex-0", Phase: underFaults, Call: 1, Failed: 2, Err: "context deadline exceeded while waiting"}
	assert.Empty(t, starved(work, 1, time.Second, &history{Ops: append(good, unheard)}, &stats), "under faults one may wait in vain")
	assert.Equal(t, 1, stats.GaveUp)
}

func TestOvertaken(t *testing.T) {
	ticket := func(us int64) uint64 { return uint64(us) << 10 }
	a := &operation{Op: "a", Weight: 1, Token: ticket(2), Phase: allWell, Call: 100, Begin: 200}
	b := &operation{Op: "b", Weight: 1, Token: ticket(1) + 1, Phase: allWell, Call: 120, Begin: 150}
	var stats waitStats
	found := func(capacity int64, ttl time.Duration, ops ...*operation) int {
		return len(overtaken(ops, capacity, 2000, ttl, ttl/2, &stats))
	}
	assert.Equal(t, 1, found(1, 20, a, b))
	assert.Zero(t, found(1, 60, a, b), "within the bound")
	assert.Zero(t, found(2, 20, a, b), "they do not conflict")
	mate := &operation{Op: "c", Weight: 1, Token: ticket(1), Phase: allWell, Call: 90, Begin: 110}
	assert.Zero(t, found(1, 20, mate, a, b), "the claim had asked before")
	before := &operation{Op: "c0.1.1", Weight: 1, Token: ticket(0), Phase: afterFaults, Call: 90, Begin: 95, End: 115}
	a.Op = "c0.1.2"
	assert.Zero(t, found(1, 20, before, a, b), "its process had the lock until then")
	before.End = 105
	assert.Equal(t, 1, found(1, 20, before, a, b), "that ended long before")
	before.Op, before.End = "c0.2.1", 115
	assert.Equal(t, 1, found(1, 20, before, a, b), "another process had it")
	b.Begin = 250
	assert.Zero(t, found(1, 20, a, b))
	assert.Zero(t, stats.Restarted)
	b.Begin, a.Token = 150, ticket(3)
	assert.Zero(t, found(1, 20, a, b), "it was not settled within a ttl")
	assert.Equal(t, 1, stats.Restarted)
}

// What stands still breaks no rule, and shows nothing.
func TestEnough(t *testing.T) {
	r := &result{Plan: plan{For: time.Second, MinRate: 2}}
	r.Plan.Work, r.History = []string{"mutex"}, &history{}
	require.Error(t, r.enough())
	held := &operation{Kind: "mutex", Begin: 1}
	r.History.Ops = []*operation{held, held}
	require.NoError(t, r.enough())
	held.Phase = allWell
	require.Error(t, r.enough(), "only what was done under faults counts")
	assert.ErrorContains(t, (&result{harmDone: harmDone{Apart: skew}}).enough(), "off by 1s")
}

func TestResource(t *testing.T) {
	for _, fenced := range []bool{true, false} {
		r, err := openResource(fenced)
		require.NoError(t, err)
		u, err := dialResource(r.addr())
		require.NoError(t, err)
		ask := func(what string, token uint64, alone bool, base int64) (int64, bool) {
			v, ok, err := u.ask(request{what, "n", token, alone, "op", base})
			require.NoError(t, err)
			return v, ok
		}
		_, ok := ask(doRead, 5, true, 0)
		require.True(t, ok)
		_, ok = ask(doRead, 6, true, 0) // the next one, while the first one sleeps
		require.True(t, ok)
		_, ok = ask(doWrite, 6, true, 0)
		require.True(t, ok)
		_, ok = ask(doRead, 8, false, 0)
		require.True(t, ok)
		v, ok := ask(doRead, 7, false, 0)
		require.True(t, ok, "readers do not mind each other")
		assert.EqualValues(t, 1, v)
		_, ok = ask(doWrite, 5, true, 0)
		assert.Equal(t, !fenced, ok)
		u.close()
		stats := r.close()
		assert.Equal(t, fenced, len(stats.Corrupt) == 0)
		for _, l := range stats.Corrupt {
			assert.Equal(t, "op", l.op)
			assert.EqualValues(t, 5, l.token)
		}
	}
}

// A lost update is told with the operation that wrote, and whether its client
// slept.
func TestOverwritten(t *testing.T) {
	l := lostUpdate{access: access{request: request{op: "op", token: 5}, at: 1000}}
	o := held("op", 1, 5, 1, 2)
	assert.Equal(t, []*operation{o}, overwritten(l, map[string]*operation{"op": o}).Ops)
	assert.True(t, overslept(l, map[string]*operation{"op": o}))
	o.Until = 1000
	assert.False(t, overslept(l, map[string]*operation{"op": o}))
}

// A number that changes while a claim holds the lock is reported.
func TestChangeUnderAReadLockIsReported(t *testing.T) {
	read := func(op string, value int64) access {
		return access{request: request{what: doRead, name: "n", op: op}, value: value, ok: true}
	}
	assert.Empty(t, torn([]access{read("a", 1), read("b", 1), read("a", 1), read("b", 1)}))
	assert.Len(t, torn([]access{read("a", 1), read("b", 1), read("a", 2)}), 1)
}

// No more nodes lose their data than the protocol tolerates.
func TestMemory(t *testing.T) {
	tells := marker{incarnation: 7, whole: true}
	m := newMemory(newRoster(5).all, time.Hour, func(int) (marker, error) { return tells, nil })
	require.NoError(t, m.lose(0))
	m.back(0)
	require.NoError(t, m.lose(1))
	require.NoError(t, m.lose(0), "that one has none to lose")
	require.ErrorIs(t, m.lose(2), errSkip)

	m = newMemory(newRoster(3).all, time.Minute, m.marker)
	lost := time.Now().Add(-5 * time.Minute)
	m.lost[0] = loss{at: lost}
	require.ErrorIs(t, m.lose(1), errSkip, "it is not back yet")
	m.lost[0] = loss{at: lost, back: time.Now().Add(-time.Minute)}
	tells.born = lost.Add(-time.Hour)
	require.ErrorIs(t, m.lose(1), errSkip, "it is not back for long enough")
	m.lost[0] = loss{at: lost, back: lost}
	tells.born = time.Time{}
	require.ErrorIs(t, m.lose(1), errSkip, "no client has noticed yet")
	tells.born = time.Now().Add(-time.Second)
	require.ErrorIs(t, m.lose(1), errSkip, "it was noticed late")
	tells.born = time.Now().Add(-2 * time.Minute)
	tells.whole = false
	require.ErrorIs(t, m.lose(1), errSkip, "it is not repaired yet")
	tells.whole = true
	require.NoError(t, m.lose(1), "it has had its guard time")
}

// A node whose marker does not show the loss has lost its data unnoticed until
// a client notices.
func TestMemoryThatPretends(t *testing.T) {
	tells := marker{incarnation: 7, whole: true, born: time.Now().Add(-time.Hour)}
	m := newMemory(newRoster(3).all, time.Second, func(int) (marker, error) { return tells, nil })
	require.NoError(t, m.lose(0))
	require.NoError(t, m.pretend(0))
	m.back(0)
	m.lost[0] = loss{at: m.lost[0].at, back: time.Now().Add(-time.Minute), pretends: m.lost[0].pretends}
	require.ErrorIs(t, m.lose(0), errSkip, "what comes next may hide what came before")
	require.ErrorIs(t, m.lose(1), errSkip)
	tells.incarnation = 8
	require.NoError(t, m.lose(1))
}

// A jump of a clock that no client can tell from a jump of its own is over when
// the leases of before have ended. Without that, nothing would be done to data
// for the rest of the run.
func TestJumpThatIsNeverNoticed(t *testing.T) {
	tells := marker{incarnation: 7, whole: true, born: time.Now().Add(-time.Hour)}
	m := newMemory(newRoster(3).all, time.Second, func(int) (marker, error) { return tells, nil })
	require.NoError(t, m.lose(0))
	m.byClock(0)
	require.NoError(t, m.pretend(0))
	m.back(0)
	ago := func(d time.Duration) {
		l := m.lost[0]
		l.at, l.back = time.Now().Add(-d), time.Now().Add(-d)
		m.lost[0] = l
	}
	ago(3*time.Second - 100*time.Millisecond)
	require.ErrorIs(t, m.lose(0), errSkip)
	require.ErrorIs(t, m.lose(1), errSkip)
	ago(3*time.Second + 100*time.Millisecond)
	require.NoError(t, m.lose(1))
}
