package wake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// setWall does to a clock what setting the wall clock does.
func setWall(c *Clock, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := *c.base.Load()
	b.wall -= int64(d)
	c.base.Store(&b)
}

func TestLocalClock(t *testing.T) {
	t.Parallel()
	c := NewClock()
	wall, began := time.Now(), c.Now()
	require.Positive(t, began)
	expected := func(asleep time.Duration) {
		t.Helper()
		before := time.Now()
		at := c.Now()
		after := time.Now()
		assert.GreaterOrEqual(t, at.Sub(began), asleep+before.Sub(wall)-steady)
		assert.LessOrEqual(t, at.Sub(began), asleep+after.Sub(wall)+steady)
		assert.WithinRange(t, c.When(at), before.Add(-steady), after.Add(steady))
	}
	expected(0)
	for range 3 {
		setWall(c, time.Hour)
		expected(0)
		setWall(c, -2*time.Hour)
		expected(0)
	}
	asleep := time.Duration(0)
	for range 3 {
		c.Suspend(time.Hour)
		asleep += time.Hour
		expected(asleep)
		setWall(c, -time.Hour)
		expected(asleep)
	}
	c.slept = func() (time.Duration, bool) { return 0, false }
	setWall(c, time.Hour)
	expected(asleep)
}

// A machine that was too busy at first says later for how long it has slept
// since it was started. The clock does not take that for sleep, and counts what
// comes after.
func TestSleepThatCouldNotBeReadAtFirst(t *testing.T) {
	t.Parallel()
	slept, ok := time.Duration(0), false
	c := clockOf(func() (time.Duration, bool) { return slept, ok })
	slept, ok = time.Hour, true
	c.CountSleep()
	assert.Less(t, time.Duration(c.Now()), time.Minute)
	slept += time.Hour
	c.CountSleep()
	assert.Greater(t, time.Duration(c.Now()), time.Hour)
	assert.Less(t, time.Duration(c.Now()), time.Hour+time.Minute)
}
