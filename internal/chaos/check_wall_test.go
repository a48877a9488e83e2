package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Holds of clients whose clock is wrong are counted.
func TestWallStats(t *testing.T) {
	held := operation{Begin: 1, Until: 2}
	wrong := held
	wrong.Wall = int64(year)
	var stats wallStats
	stats.of(&history{Ops: []*operation{&held, &wrong}, Set: 2})
	assert.Equal(t, wallStats{Set: 2, Held: 1}, stats)
}

// A token far from the time is found.
func TestAstray(t *testing.T) {
	const epoch = int64(1e18)
	hold := func(off time.Duration) *operation {
		begin := int64(time.Hour)
		return &operation{Name: "n", Token: uint64((epoch+begin+int64(off))/1000) << 10, Begin: begin, Until: begin + 5, End: begin + 5}
	}
	for off, want := range map[time.Duration]int{0: 0, 2 * time.Second: 0, -11 * time.Second: 0, 10 * time.Minute: 1, -10 * time.Minute: 1, year: 1, -year: 1} {
		assert.Len(t, astray([]*operation{hold(off)}, epoch, 2*time.Second), want, "%v", off)
	}
}

// The log says when a client's clock was wrong.
func TestWallInHistory(t *testing.T) {
	dir := t.TempDir()
	log, err := createLog(filepath.Join(dir, "c0.1.log"), "c0.1")
	require.NoError(t, err)
	var w wallClock
	w.set(0, log)
	w.set(time.Minute, log)
	assert.WithinDuration(t, time.Now().Add(time.Minute), w.now(), 10*time.Second)
	op := log.call(event{Kind: "mutex", Name: "n"})
	w.set(0, log)
	log.fail(op, os.ErrExist)
	require.NoError(t, log.close())
	h, err := loadHistory(dir, phases{})
	require.NoError(t, err)
	assert.Equal(t, 2, h.Set)
	assert.EqualValues(t, time.Minute, h.ByOp[op].Wall)
	assert.Greater(t, h.ByOp[op].Set, h.ByOp[op].Call)
}
