package fleet

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/stretchr/testify/assert"
)

// A node that says that it is caught up has what a majority may have had.
func TestCaughtUpNodeHasWhatTheOthersHad(t *testing.T) {
	type names = map[string]struct{}
	self, has := Marker{}, names{}
	others := []names{{"a": {}, "b": {}}, {"a": {}}}
	w := &RepairCheck{roster: NewRoster(3), shown: &Shown{}, guard: time.Minute,
		lost: func(int, int64) bool { return true }}
	w.track(3)
	w.markers = append(w.markers, func() (Marker, error) { return self, nil })
	w.records = append(w.records,
		func() (names, error) { return has, nil },
		func() (names, error) { return others[0], nil },
		func() (names, error) { return others[1], nil })
	turn := func(inc int64, age time.Duration, whole bool) int {
		self = Marker{Incarnation: inc, born: time.Now().Add(-age), whole: whole}
		w.look(0)
		return len(w.Found)
	}
	assert.Zero(t, turn(1, 0, true), "its beginning was not seen: it is another one's replica, or new")
	assert.Zero(t, turn(2, 0, false))
	has = names{"a": {}, "b": {}}
	assert.Zero(t, turn(2, time.Second, true))
	assert.Equal(t, 1, w.N)

	assert.Zero(t, turn(3, 0, false))
	has = names{"a": {}}
	assert.Equal(t, 1, turn(3, time.Second, true),
		"the only other one that has it is one of the two that must be asked")
	assert.Contains(t, w.Found[0].What, "lacks 1 of 2 records: b")

	assert.Equal(t, 1, turn(4, 2*time.Minute, false))
	assert.Equal(t, 1, turn(4, 2*time.Minute, true), "it was seen too late to know what it must get")
}

// A node that is within its guard time has lost something.
func TestSilencedNode(t *testing.T) {
	lost := false
	w := &RepairCheck{guard: time.Minute, known: make([]int64, 1), since: make([]int64, 1),
		lost: func(int, int64) bool { return lost }}
	turn := func(incarnation int64) int {
		w.suspect(0, incarnation)
		return len(w.Found)
	}
	assert.Zero(t, turn(1), "it was not known before")
	assert.Zero(t, turn(1))
	lost = true
	assert.Zero(t, turn(2))
	lost = false
	assert.Equal(t, 1, turn(3))
	assert.Equal(t, 1, turn(3), "it is said once")
}

// A loss that is noticed only when the machine has time again explains one new
// incarnation, not two.
func TestLossThatIsNoticedLate(t *testing.T) {
	hour := int64(time.Hour)
	var end int64 // of the loss
	w := &RepairCheck{guard: time.Second, known: make([]int64, 1), since: make([]int64, 1),
		lost: func(_ int, since int64) bool { return end > since }}
	w.suspect(0, 1)
	w.since[0], end = record.Now()-2*hour, record.Now()-hour
	w.suspect(0, 2)
	assert.Empty(t, w.Found)
	w.suspect(0, 3)
	assert.Len(t, w.Found, 1)
}
