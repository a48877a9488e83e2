package change_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
)

// logIsOnDisk: what is appended to a file is there after two seconds.
func logIsOnDisk(t assert.TestingT) {
	o := newCall(t, setOf(1, "A", "B", "C"), entering("D", "C"))
	o.disk = change.Persistence{Known: true, Log: true}
	o.until(o.stage(nodeset.Jointly))
	about(t, o.until(o.stage(nodeset.Stable)), 2*time.Second+exchangeWait, "both sets count")
}

// snapshotsAreSpaced: a node that cannot write one is asked each second.
func snapshotsAreSpaced(t assert.TestingT) {
	o := newCall(t, setOf(1, "A"), entering("D", "A"))
	o.disk.Snapshots = true
	o.until(o.stage(nodeset.Jointly))
	end := o.now.Add(10 * time.Second)
	o.until(func() bool { return o.now >= end })
	assert.InDelta(t, 10, o.saves, 1)
	assert.Equal(t, nodeset.Jointly, o.c.Stage)
}

// A node that keeps snapshots counts when one is written that has begun since
// it moved. One that failed is written again.
func TestASnapshotCountsThatHasBegunSince(t *testing.T) {
	t.Parallel()
	o := newCall(t, setOf(1, "A"), entering("D", "A"))
	o.disk = change.Persistence{Known: true, Saved: true, Saving: true, Snapshots: true}
	o.until(o.stage(nodeset.Jointly))
	o.step()
	require.Zero(t, o.saves, "one is being written that may lack the move")
	o.disk.Saving, o.keeps = false, change.Persistence{Known: true, Saving: true}
	o.step()
	require.Equal(t, 1, o.saves)
	o.disk.Saved = false
	o.until(func() bool { return o.saves == 2 })
	o.disk.Saved = true
	about(t, o.until(o.stage(nodeset.Stable)), exchangeWait, "both sets count")
	assert.Equal(t, 2, o.saves)
}

// A server that ends while it writes a snapshot comes back with the file of
// before, and says that its last snapshot has not failed. Clients move it
// again, and it has to write another one.
func TestASnapshotIsLostWithItsRun(t *testing.T) {
	t.Parallel()
	o := newCall(t, setOf(1, "A"), entering("D", "A"))
	o.disk = change.Persistence{Known: true, Run: "1", Saved: true, Snapshots: true}
	o.keeps = change.Persistence{Known: true, Run: "1", Saving: true}
	o.until(func() bool { return o.saves == 1 })
	o.disk.Run = "2"
	o.step()
	o.step()
	assert.GreaterOrEqual(t, o.saves, 2, "the snapshot of run 1 was lost with it")
	ends := o.now.Add(3 * exchangeWait)
	o.until(func() bool { return o.now >= ends })
	assert.Equal(t, nodeset.Jointly, o.c.Stage, "a snapshot of run 1 counts for none of run 2")
	o.keeps.Run = "2"
	o.until(never)
	assert.Equal(t, change.OperatorDone, o.end)
}

// What a node refuses to say of its disk is no reason to wait, and what it does
// not say is.
func TestANodeThatRefusesToSayWhatItKeeps(t *testing.T) {
	t.Parallel()
	o := newCall(t, setOf(1, "A"), entering("D", "A"))
	o.disk = change.Persistence{}
	o.until(o.stage(nodeset.Jointly))
	end := o.now.Add(3 * exchangeWait)
	o.until(func() bool { return o.now >= end })
	assert.Equal(t, nodeset.Jointly, o.c.Stage)
	o.disk = change.Persistence{Known: true, Refused: true}
	o.until(never)
	assert.Equal(t, change.OperatorDone, o.end)
}
