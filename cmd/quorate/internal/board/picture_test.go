package board

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/lanes"
	"github.com/quorate/quorate/inspect"
)

// shown writes a lane of the picture: for each run the columns from the right,
// and what it shows.
func shown(p *Picture, runs []lanes.Run, value func(v int) string) string {
	var all []string
	for _, r := range runs {
		all = append(all, fmt.Sprintf("%d-%d %s", p.Columns-r.At(), p.Columns-r.At()-r.Len(), value(r.Value())))
	}
	return strings.Join(all, ", ")
}

func lane(t *testing.T, p *Picture, name string) (held, wait string) {
	t.Helper()
	for _, l := range p.Names {
		if l.Name == name {
			return shown(p, l.Held, func(v int) string { return p.Processes[v-1].Short }),
				shown(p, l.Wait, func(v int) string { return fmt.Sprint(v) })
		}
	}
	return "no lane", ""
}

// The picture shows which process held a name, how many waited, and each
// process by itself, also when the name is not in use any more.
func TestPicture(t *testing.T) {
	b := New()
	look := func(from, to int, all ...inspect.Claim) {
		for s := from; s < to; s++ {
			b.Observe(seen(float64(s), held(all...)))
		}
	}
	look(0, 10)
	look(10, 30, claim(1, 8))
	look(30, 50, claim(1, 8), claim(2, 8), claim(3, 8))
	look(50, 60, claim(2, 8), claim(3, 8))
	look(60, 61)
	b.Observe(seen(100))
	p := b.View().Picture
	holds, waits := lane(t, &p, "job")
	assert.Equal(t, "90-50 h:1, 50-40 h:2", holds)
	assert.Equal(t, "70-50 2, 50-40 1", waits)
	require.Len(t, p.Names[0].Queue, 3)
	for i, want := range []string{"90-50 |", "50-40 | 70-50", "| 70-40"} {
		q := p.Names[0].Queue[i]
		columns := func(runs []lanes.Run) string {
			return strings.TrimSpace(shown(&p, runs, func(int) string { return "" }))
		}
		assert.Equal(t, want, strings.TrimSpace(columns(q.Held)+" | "+columns(q.Wait)), q.Name)
		assert.Equal(t, fmt.Sprintf("process %d on h", i+1), q.Name)
	}
	colours := map[int]bool{}
	for _, painted := range p.Processes {
		colours[painted.Colour] = true
	}
	assert.Len(t, colours, 3)

	for s := 101; s < 400; s++ {
		b.Observe(seen(float64(s)))
	}
	assert.Empty(t, b.View().Picture.Names, "all is too long ago")
	assert.Empty(t, b.past)
	assert.Empty(t, b.painter.colours)
}

// Where several processes hold a name, its lane says how many, and their own
// lanes say which.
func TestPictureOfSeveral(t *testing.T) {
	b := New()
	both := inspect.Report{Name: "job", Kind: inspect.Semaphore,
		Holders: []inspect.Claim{claim(1, 8), claim(2, 8)}}
	b.Observe(seen(0, held(claim(1, 8))))
	b.Observe(seen(10, both))
	b.Observe(seen(20, held(claim(2, 8))))
	b.Observe(seen(30))
	p := b.View().Picture
	holds, waits := lane(t, &p, "job")
	assert.Equal(t, "30-20 h:1, 20-10 2 processes, 10-0 h:2", holds)
	assert.Empty(t, waits)
	number := func(v int) string { return p.Processes[v-1].Short }
	assert.Equal(t, "30-10 h:1", shown(&p, p.Names[0].Queue[0].Held, number))
	assert.Equal(t, "20-0 h:2", shown(&p, p.Names[0].Queue[1].Held, number))
	assert.Equal(t, -1,
		p.Processes[slices.IndexFunc(p.Processes, func(p Painted) bool { return p.Short == "2 processes" })].Colour)
}

// What is not known is not drawn, and a process keeps its colour.
func TestPictureOfWhatIsNotKnown(t *testing.T) {
	b := New()
	b.Observe(seen(0, held(claim(1, 8))))
	b.Observe(seen(10, held(claim(1, 8))))
	b.Observe(Observation{At: at(20), Trouble: "no quorum"})
	p := b.View().Picture
	holds, _ := lane(t, &p, "job")
	assert.Equal(t, "20-10 h:1", holds)
	was := p.Processes[0].Colour
	b.Observe(seen(30, held(claim(2, 8))))
	b.Observe(seen(40, held(claim(1, 8))))
	b.Observe(seen(50, held(claim(1, 8))))
	p = b.View().Picture
	holds, _ = lane(t, &p, "job")
	assert.Equal(t, "50-40 h:1, 20-10 h:2, 10-0 h:1", holds)
	assert.Equal(t, was, p.Processes[0].Colour)
}

func TestPictureOfNodes(t *testing.T) {
	b := New()
	states := map[int]Node{0: {Up: true}, 10: {State: "unreachable"},
		20: {Up: true, Recovering: 20}, 40: {Up: true}}
	for s := 0; s <= 50; s += 10 {
		n, changed := states[s]
		if !changed {
			n = b.nodes["a"]
		}
		n.Name = "a"
		b.Observe(Observation{At: at(float64(s)), Nodes: []Node{n}})
	}
	p := b.View().Picture
	require.Len(t, p.Nodes, 1)
	assert.Equal(t, "40-30 2, 30-10 1", shown(&p, p.Nodes[0].Held, func(v int) string { return fmt.Sprint(v) }))
	b.Observe(Observation{At: at(60)})
	assert.Empty(t, b.nodeHistory)
}

// However much happens, what is kept and shown is bounded.
func TestPictureIsBounded(t *testing.T) {
	b := New()
	for s := range 60 {
		var all []inspect.Report
		for i := range 2 * MostNames {
			r := held(claim(s*1000+i, 8), claim(s*1000+i+1, 8), claim(s*1000+i+2, 8), claim(s*1000+i+3, 8))
			r.Name = fmt.Sprint((s + i) % (3 * MostNames))
			all = append(all, r)
		}
		b.Observe(seen(float64(s)/2, all...))
	}
	for _, n := range b.names {
		assert.LessOrEqual(t, len(n.history.all), mostStretches)
	}
	assert.LessOrEqual(t, len(b.past), 2*MostNames)
	p := b.View().Picture
	assert.LessOrEqual(t, len(p.Names), mostLanes)
	runs := 0
	for _, l := range p.Names {
		runs += len(l.Held) + len(l.Wait)
		for _, q := range l.Queue {
			runs += len(q.Held) + len(q.Wait)
		}
	}
	assert.LessOrEqual(t, runs, mostRuns+mostLanes*2*columns)
}

func TestWords(t *testing.T) {
	for cause, want := range map[string]string{
		"": "", "refused": "refused",
		"not connected: connect to a:1: dial tcp 127.0.0.1:1: connect: connection refused": "connection refused",
		"dial tcp: lookup lock-c on 10.0.0.2:53: no such host":                             "no such host",
		"context deadline exceeded: the node or the network is down or slow; and so on":    "timeout",
		"i/o timeout": "i/o timeout", "read tcp 1.2.3.4:5->1.2.3.4:6: i/o timeout": "i/o timeout",
		"NOAUTH Authentication required.": "NOAUTH Authentication required.",
		strings.Repeat("x", 100):          strings.Repeat("x", 59) + "…",
	} {
		assert.Equal(t, want, reason(cause), cause)
	}
	r := inspect.Report{Record: &inspect.Record{ID: "web-1", Token: 7, At: at(60)}}
	for kind, want := range map[inspect.Kind]string{
		inspect.Once: "done 03:05:05 UTC", inspect.Period: "last run 03:05:05 UTC",
		inspect.Flight: "loaded 03:05:05 UTC",
		inspect.Leader: "no leader (last: web-1)", inspect.Mutex: "a value of another program",
	} {
		r.Kind = kind
		assert.Equal(t, want, record(&r, at(100)))
	}
	r.Kind, r.Holders = inspect.Leader, []inspect.Claim{claim(1, 8)}
	assert.Equal(t, "web-1 leads", record(&r, at(100)))
	r.Kind = inspect.Once
	assert.Equal(t, "done 2026-01-02 03:05 UTC", record(&r, at(100).Add(24*time.Hour)))
}

// Names that are only remembered are not counted as in use.
func TestRememberedNamesAreNotInUse(t *testing.T) {
	b := New()
	b.Observe(seen(0, held(claim(1, 8))))
	assert.Equal(t, 1, b.View().Total)
	b.Observe(Observation{At: at(1), Trouble: "no quorum", Total: 1, Counted: true})
	v := b.View()
	assert.Zero(t, v.Total)
	assert.Len(t, v.Names, 1)
}
