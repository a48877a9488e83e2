package fleet

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No more nodes lose their data than the protocol tolerates.
func TestMemory(t *testing.T) {
	tells := Marker{Incarnation: 7, whole: true}
	m := NewMemory(NewRoster(5).All, time.Hour, func(int) (Marker, error) { return tells, nil })
	require.NoError(t, m.Lose(0))
	m.Back(0)
	require.NoError(t, m.Lose(1))
	require.NoError(t, m.Lose(0), "that one has none to lose")
	require.ErrorIs(t, m.Lose(2), ErrSkip)

	m = NewMemory(NewRoster(3).All, time.Minute, m.marker)
	lost := time.Now().Add(-5 * time.Minute)
	m.lost[0] = loss{at: lost}
	require.ErrorIs(t, m.Lose(1), ErrSkip, "it is not back yet")
	m.lost[0] = loss{at: lost, back: time.Now().Add(-time.Minute)}
	tells.born = lost.Add(-time.Hour)
	require.ErrorIs(t, m.Lose(1), ErrSkip, "it is not back for long enough")
	m.lost[0] = loss{at: lost, back: lost}
	tells.born = time.Time{}
	require.ErrorIs(t, m.Lose(1), ErrSkip, "no client has noticed yet")
	tells.born = time.Now().Add(-time.Second)
	require.ErrorIs(t, m.Lose(1), ErrSkip, "it was noticed late")
	tells.born = time.Now().Add(-2 * time.Minute)
	tells.whole = false
	require.ErrorIs(t, m.Lose(1), ErrSkip, "it is not repaired yet")
	tells.whole = true
	require.NoError(t, m.Lose(1), "it has had its guard time")
}

// A node whose marker does not show the loss has lost its data unnoticed until
// a client notices.
func TestMemoryThatPretends(t *testing.T) {
	tells := Marker{Incarnation: 7, whole: true, born: time.Now().Add(-time.Hour)}
	m := NewMemory(NewRoster(3).All, time.Second, func(int) (Marker, error) { return tells, nil })
	require.NoError(t, m.Lose(0))
	require.NoError(t, m.Pretend(0))
	m.Back(0)
	m.lost[0] = loss{at: m.lost[0].at, back: time.Now().Add(-time.Minute), pretends: m.lost[0].pretends}
	require.ErrorIs(t, m.Lose(0), ErrSkip, "what comes next may hide what came before")
	require.ErrorIs(t, m.Lose(1), ErrSkip)
	tells.Incarnation = 8
	require.NoError(t, m.Lose(1))
}

// A jump of a clock that no client can tell from a jump of its own is over when
// the earlier leases have ended. Without that, nothing would be done to data
// for the rest of the run.
func TestJumpThatIsNeverNoticed(t *testing.T) {
	tells := Marker{Incarnation: 7, whole: true, born: time.Now().Add(-time.Hour)}
	m := NewMemory(NewRoster(3).All, time.Second, func(int) (Marker, error) { return tells, nil })
	require.NoError(t, m.Lose(0))
	m.ByClock(0)
	require.NoError(t, m.Pretend(0))
	m.Back(0)
	ago := func(d time.Duration) {
		l := m.lost[0]
		l.at, l.back = time.Now().Add(-d), time.Now().Add(-d)
		m.lost[0] = l
	}
	ago(3*time.Second - 100*time.Millisecond)
	require.ErrorIs(t, m.Lose(0), ErrSkip)
	require.ErrorIs(t, m.Lose(1), ErrSkip)
	ago(3*time.Second + 100*time.Millisecond)
	require.NoError(t, m.Lose(1))
}

// The check of guard times allows for a clock that has slipped, and no other
// check does.
func TestSlip(t *testing.T) {
	m := NewMemory(NewRoster(3).All, time.Second, nil)
	m.Slip(1, record.Now())
	assert.True(t, m.LostSince(1, record.Now()-int64(time.Minute)))
	assert.False(t, m.LostSince(1, record.Now()+int64(time.Minute)))
	assert.False(t, m.LostSince(0, 0))
	assert.Empty(t, m.Losses())
}
