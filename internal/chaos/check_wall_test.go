package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/core"
)

// A client whose clock is wrong is refused. One whose clock is right is not,
// except for a while after it was set right.
func TestRefusals(t *testing.T) {
	refused := (&core.WallError{By: year, Nodes: 2, Of: 3, Allowed: time.Second}).Error()
	at := func(d time.Duration) int64 { return int64(time.Hour + d) }
	wrong := &operation{Op: "a", Call: at(0), Failed: at(0), Err: "quorate: lock: " + refused, Wall: int64(year), Set: at(-time.Minute)}
	late := &operation{Op: "b", Call: at(0), Failed: at(time.Second), Err: "quorate: lock: " + refused, Set: at(0)}
	other := &operation{Op: "c", Call: at(0), Failed: at(0), Err: "quorate: lock: " + core.ErrNoQuorum.Error() + " (0 of 2 votes): set the wrong clock right (NTP)"}
	within := &operation{Op: "d", Call: at(0), Begin: at(0), Until: at(time.Second), Wall: int64(skew / 2), Set: at(0)}
	var stats wallStats
	assert.Empty(t, refusals(&history{Ops: []*operation{wrong, late, other, within}, Set: 2}, &stats))
	assert.Equal(t, wallStats{Set: 2, Refused: 1}, stats)
	late.Set = at(-time.Minute)
	right := &operation{Op: "e", Call: at(0), Failed: at(0), Err: "quorate: lock: " + refused}
	ops := []*operation{late, right}
	assert.Len(t, refusals(&history{Ops: ops}, &stats), 1, "of one that was set no majority may have heard")
	for second := range lately / time.Second {
		begin := at(-30*time.Second + second*time.Second)
		ops = append(ops, &operation{Op: "f", Begin: begin, Until: begin + 1})
	}
	assert.Len(t, refusals(&history{Ops: ops}, &stats), 2)
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
