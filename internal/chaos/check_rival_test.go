package main

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/stretchr/testify/assert"
)

// A hold of ours beside a rival's is a fault, whichever was first, unless a
// node had lost its memory where that may be the reason.
func TestIntrusions(t *testing.T) {
	const ttl = 50 * time.Nanosecond
	judge := func(ours, theirs *operation, losses ...memoryLoss) (found, judged, excused int) {
		var stats rivalStats
		found = len(intrusions([]*operation{ours}, []*operation{theirs}, lists{"": {nodes: []int{0, 1, 2}}}, losses, ttl, &stats))
		assert.Equal(t, 1, stats.Holds)
		return found, stats.Judged, stats.Excused
	}
	lost := func(from, to int64) memoryLoss { return memoryLoss{from: from, to: to} }
	set := func(from, to int64) memoryLoss { return memoryLoss{from: from, to: to, clock: true} }
	type result struct{ found, judged, excused int }
	for name, c := range map[string]struct {
		ours, theirs *operation
		losses       []memoryLoss
		want         result
	}{
		"one after the other":              {held("a", 1, 9, 1000, 1100), held("r", 1, 0, 1100, 1200), nil, result{0, 1, 0}},
		"ours first":                       {held("a", 1, 9, 1000, 1100), held("r", 1, 0, 1099, 1200), nil, result{1, 1, 0}},
		"theirs first":                     {held("a", 1, 9, 1199, 1300), held("r", 1, 0, 1100, 1200), nil, result{1, 1, 0}},
		"ours first, a loss":               {held("a", 1, 9, 1000, 1100), held("r", 1, 0, 1090, 1200), []memoryLoss{lost(1050, 1060)}, result{0, 0, 1}},
		"ours first, a loss going on":      {held("a", 1, 9, 1000, 1100), held("r", 1, 0, 1090, 1200), []memoryLoss{lost(500, 0)}, result{0, 0, 1}},
		"ours first, a loss long ago":      {held("a", 1, 9, 1000, 1100), held("r", 1, 0, 1090, 1200), []memoryLoss{lost(500, 980)}, result{1, 1, 0}},
		"ours first, a loss afterwards":    {held("a", 1, 9, 1000, 1100), held("r", 1, 0, 1090, 1200), []memoryLoss{lost(1091, 1095)}, result{1, 1, 0}},
		"theirs first, a loss before":      {held("a", 1, 9, 1150, 1300), held("r", 1, 0, 1100, 1200), []memoryLoss{lost(1080, 1085)}, result{0, 0, 1}},
		"theirs first, a loss since":       {held("a", 1, 9, 1150, 1300), held("r", 1, 0, 1100, 1200), []memoryLoss{lost(1110, 1120)}, result{1, 1, 0}},
		"theirs first, a clock set since":  {held("a", 1, 9, 1150, 1300), held("r", 1, 0, 1100, 1200), []memoryLoss{set(1110, 1120)}, result{0, 0, 1}},
		"theirs first, a clock set later":  {held("a", 1, 9, 1150, 1300), held("r", 1, 0, 1100, 1200), []memoryLoss{set(1151, 1160)}, result{1, 0, 0}},
		"their validity ended before ours": {held("a", 1, 9, 1150, 1300), &operation{Begin: 1100, Until: 1150, End: 1250}, nil, result{0, 1, 0}},
	} {
		found, judged, excused := judge(c.ours, c.theirs, c.losses...)
		assert.Equal(t, c.want, result{found, judged, excused}, name)
	}
}

// While nodes are exchanged a rival's list is as good as ever until a set
// counts alone whose majorities may miss those of the list. A loss of a node
// that is not in the list excuses nothing.
func TestIntrusionsWhileNodesAreExchanged(t *testing.T) {
	const ttl = 50 * time.Nanosecond
	judge := func(until int64, ours, theirs *operation, losses ...memoryLoss) (int, rivalStats) {
		var stats rivalStats
		found := intrusions([]*operation{ours}, []*operation{theirs}, lists{"c4.2": {[]int{0, 1, 2}, until}}, losses, ttl, &stats)
		return len(found), stats
	}
	ours, theirs := held("a", 1, 9, 1150, 1300), held("c4.2.7", 1, 0, 1100, 1200)
	for name, c := range map[string]struct {
		until        int64
		ours, theirs *operation
		losses       []memoryLoss
		found        int
		want         rivalStats
	}{
		"the list holds":              {0, ours, theirs, nil, 1, rivalStats{Holds: 1, Judged: 1}},
		"both before the new set":     {1151, ours, theirs, nil, 1, rivalStats{Holds: 1, Judged: 1}},
		"ours by the new set":         {1150, ours, theirs, nil, 0, rivalStats{Holds: 1, Judged: 1}},
		"theirs after the new set":    {1100, ours, theirs, nil, 0, rivalStats{Holds: 1, Outside: 1}},
		"a loss of another server":    {0, ours, theirs, []memoryLoss{{node: 3, from: 1080, to: 1085}}, 1, rivalStats{Holds: 1, Judged: 1}},
		"a dead server that has left": {0, ours, theirs, []memoryLoss{{node: 4, from: 1}}, 1, rivalStats{Holds: 1, Judged: 1}},
		"a loss of a node of theirs":  {0, ours, theirs, []memoryLoss{{node: 2, from: 1080, to: 1085}}, 0, rivalStats{Holds: 1, Excused: 1}},
	} {
		found, stats := judge(c.until, c.ours, c.theirs, c.losses...)
		assert.Equal(t, c.found, found, name)
		assert.Equal(t, c.want, stats, name)
	}
}

// A list excludes ours until some node may have shown a set that it does not
// meet, and that was not known when the list was given out.
func TestListsAndSets(t *testing.T) {
	assert.True(t, meet([]int{0, 1, 2}, []int{0, 1, 2}))
	assert.False(t, meet([]int{0, 1, 2}, []int{0, 1, 3}), "1 and 2, 0 and 3")
	assert.False(t, meet([]int{0, 1, 2}, []int{0, 1, 2, 3, 4}))
	assert.True(t, meet([]int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3}))

	set := func(epoch uint64, stage nodeset.Stage, addrs ...string) nodeset.NodeSet {
		c := &nodeset.Configuration{Stamp: nodeset.StampOf(epoch, nodeset.NewBallot(time.Now(), 0, "")), Stage: stage}
		for _, addr := range addrs {
			c.Members = append(c.Members, nodeset.Member{Addr: addr})
		}
		return nodeset.NodeSet{Phase: nodeset.SetRecorded, Config: c}
	}
	var s shown
	first, joint, next := set(1, nodeset.Stable, "a", "b", "c"), set(3, nodeset.Jointly, "a", "b", "c", "d"), set(4, nodeset.Stable, "a", "b", "d")
	before := first.Config.Addrs()
	s.note(nodeset.NodeSet{}, 5)
	s.note(first, 10)
	s.note(joint, 20)
	assert.Zero(t, s.until(before, 0), "both sets count")
	s.note(next, 40)
	s.note(next, 30)
	s.note(next, 50)
	assert.EqualValues(t, 30, s.until(before, 0), "the node that may have shown it first")
	assert.Zero(t, s.until(next.Config.Addrs(), now()), "the set of before is over")
}
