package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A hold of ours alongside a rival's is a fault, whichever was first, unless a
// node had lost its memory where that may be the reason.
func TestIntrusions(t *testing.T) {
	const ttl = 50 * time.Nanosecond
	judge := func(ours, theirs *Operation, losses ...Loss) (found, judged, excused int) {
		var stats RivalStats
		found = len(intrusions([]*Operation{ours}, []*Operation{theirs},
			Lists{"": {Nodes: []int{0, 1, 2}}}, losses, ttl, &stats))
		assert.Equal(t, 1, stats.Holds)
		return found, stats.Judged, stats.Excused
	}
	lost := func(from, to int64) Loss { return Loss{From: from, To: to} }
	set := func(from, to int64) Loss { return Loss{From: from, To: to, Clock: true} }
	type result struct{ found, judged, excused int }
	for name, c := range map[string]struct {
		ours, theirs *Operation
		losses       []Loss
		want         result
	}{
		"one after the other": {held("a", 1, 9, 1000, 1100),
			held("r", 1, 0, 1100, 1200), nil, result{0, 1, 0}},
		"ours first": {held("a", 1, 9, 1000, 1100),
			held("r", 1, 0, 1099, 1200), nil, result{1, 1, 0}},
		"theirs first": {held("a", 1, 9, 1199, 1300),
			held("r", 1, 0, 1100, 1200), nil, result{1, 1, 0}},
		"ours first, a loss": {held("a", 1, 9, 1000, 1100), held("r", 1, 0, 1090, 1200),
			[]Loss{lost(1050, 1060)}, result{0, 0, 1}},
		"ours first, a loss going on": {held("a", 1, 9, 1000, 1100), held("r", 1, 0, 1090, 1200),
			[]Loss{lost(500, 0)}, result{0, 0, 1}},
		"ours first, a loss long ago": {held("a", 1, 9, 1000, 1100), held("r", 1, 0, 1090, 1200),
			[]Loss{lost(500, 980)}, result{1, 1, 0}},
		"ours first, a loss afterwards": {held("a", 1, 9, 1000, 1100), held("r", 1, 0, 1090, 1200),
			[]Loss{lost(1091, 1095)}, result{1, 1, 0}},
		"theirs first, a loss before": {held("a", 1, 9, 1150, 1300), held("r", 1, 0, 1100, 1200),
			[]Loss{lost(1080, 1085)}, result{0, 0, 1}},
		"theirs first, a loss since": {held("a", 1, 9, 1150, 1300), held("r", 1, 0, 1100, 1200),
			[]Loss{lost(1110, 1120)}, result{1, 1, 0}},
		"theirs first, a clock set since": {held("a", 1, 9, 1150, 1300), held("r", 1, 0, 1100, 1200),
			[]Loss{set(1110, 1120)}, result{0, 0, 1}},
		"theirs first, a clock set later": {held("a", 1, 9, 1150, 1300), held("r", 1, 0, 1100, 1200),
			[]Loss{set(1151, 1160)}, result{1, 0, 0}},
		"their validity ended before ours": {held("a", 1, 9, 1150, 1300),
			&Operation{Begin: 1100, Until: 1150, End: 1250}, nil, result{0, 1, 0}},
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
	judge := func(until int64, ours, theirs *Operation, losses ...Loss) (int, RivalStats) {
		var stats RivalStats
		found := intrusions([]*Operation{ours}, []*Operation{theirs},
			Lists{"c4.2": {[]int{0, 1, 2}, until}}, losses, ttl, &stats)
		return len(found), stats
	}
	ours, theirs := held("a", 1, 9, 1150, 1300), held("c4.2.7", 1, 0, 1100, 1200)
	for name, c := range map[string]struct {
		until        int64
		ours, theirs *Operation
		losses       []Loss
		found        int
		want         RivalStats
	}{
		"the list holds":           {0, ours, theirs, nil, 1, RivalStats{Holds: 1, Judged: 1}},
		"both before the new set":  {1151, ours, theirs, nil, 1, RivalStats{Holds: 1, Judged: 1}},
		"ours by the new set":      {1150, ours, theirs, nil, 0, RivalStats{Holds: 1, Judged: 1}},
		"theirs after the new set": {1100, ours, theirs, nil, 0, RivalStats{Holds: 1, Outside: 1}},
		"a loss of another server": {0, ours, theirs, []Loss{{Node: 3, From: 1080, To: 1085}},
			1, RivalStats{Holds: 1, Judged: 1}},
		"a dead server that has left": {0, ours, theirs, []Loss{{Node: 4, From: 1}}, 1,
			RivalStats{Holds: 1, Judged: 1}},
		"a loss of a node of theirs": {0, ours, theirs, []Loss{{Node: 2, From: 1080, To: 1085}},
			0, RivalStats{Holds: 1, Excused: 1}},
	} {
		found, stats := judge(c.until, c.ours, c.theirs, c.losses...)
		assert.Equal(t, c.found, found, name)
		assert.Equal(t, c.want, stats, name)
	}
}
