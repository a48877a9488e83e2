package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A hold of ours beside a rival's is a fault, whichever was first, unless a node had lost its
// memory where that may be the reason.
func TestIntrusions(t *testing.T) {
	const ttl = 50 * time.Nanosecond
	judge := func(ours, theirs *operation, losses ...memoryLoss) (found, judged, excused int) {
		var stats rivalStats
		found = len(intrusions([]*operation{ours}, []*operation{theirs}, losses, ttl, &stats))
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
