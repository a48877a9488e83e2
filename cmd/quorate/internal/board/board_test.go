package board

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/inspect"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// claim is process pid, whose lease has left to run.
func claim(pid int, left float64) inspect.Claim {
	return inspect.Claim{PID: pid, Host: "h", Token: uint64(pid), Since: start,
		Left: time.Duration(left * float64(time.Second))}
}

// held is a mutex with a holder, and those that wait.
func held(all ...inspect.Claim) inspect.Report {
	return inspect.Report{Name: "job", Kind: inspect.Mutex, Holders: all[:min(1, len(all))],
		Waiters: all[min(1, len(all)):]}
}

// seen is an observation of one name.
func seen(seconds float64, reports ...inspect.Report) Observation {
	o := Observation{At: at(seconds), Whole: true, Counted: true, Total: len(reports)}
	for _, r := range reports {
		o.Names = append(o.Names, Look{At: o.At, Report: r})
	}
	return o
}

// lines are the events, the oldest first.
func lines(b *Board) (all []string) {
	v := b.View()
	for i := range v.Events {
		e := v.Events[len(v.Events)-1-i]
		all = append(all, string(e.Kind)+" "+e.Subject+": "+e.Text)
	}
	return all
}

func TestEventsOfNames(t *testing.T) {
	leader := func(id string, term uint64) inspect.Report {
		return inspect.Report{Name: "job", Kind: inspect.Leader, Record: &inspect.Record{ID: id, Token: term}}
	}
	for name, c := range map[string]struct {
		seen []Observation
		want []string
	}{
		"held from the first on": {[]Observation{seen(0, held(claim(1, 8))), seen(1, held(claim(1, 7)))}, nil},
		"taken": {[]Observation{seen(0), seen(1, held(claim(1, 8)))},
			[]string{"taken job: taken by process 1 on h"}},
		"released": {[]Observation{seen(0, held(claim(1, 8))), seen(1, held())},
			[]string{"released job: released by process 1 on h"}},
		"not in use any more": {[]Observation{seen(0, held(claim(1, 8))), seen(1)},
			[]string{"released job: released by process 1 on h"}},
		"passed on": {[]Observation{seen(0, held(claim(1, 8), claim(2, 8))), seen(1, held(claim(2, 8)))},
			[]string{"released job: released by process 1 on h", "taken job: taken by process 2 on h"}},
		"taken over after the lease": {[]Observation{seen(0, held(claim(1, 2))), seen(1, held(claim(1, 1))),
			seen(2.1, held(claim(2, 8)))},
			[]string{"lost job: lost by process 1 on h: its lease ended",
				"taken over job: taken over by process 2 on h from process 1 on h"}},
		"taken over later": {[]Observation{seen(0, held(claim(1, 2), claim(2, 8))),
			seen(2.1, inspect.Report{Name: "job", Kind: inspect.Mutex, Waiters: []inspect.Claim{claim(2, 8)}}),
			seen(3, held(claim(2, 8)))},
			[]string{"lost job: lost by process 1 on h: its lease ended",
				"taken over job: taken over by process 2 on h from process 1 on h"}},
		"seen after the lease": {[]Observation{seen(0, held(claim(1, 2))), seen(5, held())},
			[]string{"lost job: lost by process 1 on h: its lease ended"}},
		"the list is not whole": {[]Observation{{At: at(0)}, seen(1, held(claim(1, 8))), {At: at(2)},
			seen(3, held(claim(1, 7)))}, nil},
		"unsure in between": {[]Observation{seen(0, held(claim(1, 8))),
			{At: at(1), Whole: true, Total: 1, Names: []Look{{At: at(1), Report: held(), Unsure: true}}},
			seen(2, held(claim(1, 7)))}, nil},
		"another leads": {[]Observation{seen(0, leader("a", 1)), seen(1, leader("a", 1)),
			seen(2, leader("b", 2))}, []string{"leader job: led by b"}},
		"the same leads again": {[]Observation{seen(0, leader("a", 1)), seen(1, leader("a", 2))},
			[]string{"leader job: led by a"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := New()
			for _, o := range c.seen {
				b.Observe(o)
			}
			assert.Equal(t, c.want, lines(b))
		})
	}
}

// A holder that renews each third of its lease is never marked, however often
// it is looked at, and one that stops is marked before its lease ends.
func TestAHolderThatDoesNotRenewIsMarked(t *testing.T) {
	for _, ttl := range []float64{0.5, 8, 60} {
		for _, every := range []float64{0.05, 0.4, 1} {
			b, stops := New(), 10*ttl
			for s := 0.0; s < stops; s += every {
				part := float64(int(s/(ttl/3)))*(ttl/3) + ttl - s
				b.Observe(seen(s, held(claim(1, part))))
				require.False(t, b.View().Names[0].Late, "ttl %v, every %v, after %v", ttl, every, s)
			}
			marked := 0.0
			for s := stops; s < stops+ttl-every; s += every {
				b.Observe(seen(s, held(claim(1, stops+ttl-s))))
				if row := b.View().Names[0]; row.Late && marked == 0 {
					marked = s
					assert.True(t, row.Holders[0].Late)
				}
			}
			if every < ttl/3 {
				assert.NotZero(t, marked, "ttl %v, every %v", ttl, every)
				assert.LessOrEqual(t, marked-stops, 0.45*ttl+every)
			}
		}
	}
}

func TestEventsOfNodes(t *testing.T) {
	up, down := Node{Name: "a", State: "ready", Up: true},
		Node{Name: "a", State: "unreachable", Cause: "connection refused"}
	recovers := Node{Name: "a", State: "votes in 9s", Up: true, Recovering: 9}
	b := New()
	for i, n := range []Node{down, up, down, down, recovers, recovers, up, recovers} {
		b.Observe(Observation{At: at(float64(i)), Nodes: []Node{n}})
	}
	assert.Equal(t, []string{
		"node up a: ready", "node down a: unreachable: connection refused",
		"node up a: votes in 9s", "node up a: votes again",
		"node down a: is new or lost its data: votes in 9s",
	}, lines(b))
	assert.True(t, NodeDown.Bad())
	assert.False(t, NodeUp.Bad())
}

// What is in trouble comes first, then what most wait for.
func TestRows(t *testing.T) {
	named := func(name string, all ...inspect.Claim) inspect.Report {
		r := held(all...)
		r.Name = name
		return r
	}
	done := inspect.Report{Name: "done", Kind: inspect.Once, Record: &inspect.Record{}}
	look := func(s float64) Observation {
		return seen(s, done, named("c", claim(1, 9)), named("b", claim(2, 9), claim(3, 9)),
			named("a", claim(4, 9), claim(5, 9), claim(6, 9)), named("z", claim(7, 8-s)))
	}
	b := New()
	b.Observe(look(0))
	b.Observe(look(7))
	v := b.View()
	var order []string
	for _, r := range v.Names {
		order = append(order, r.Name)
	}
	assert.Equal(t, []string{"z", "a", "b", "c", "done"}, order)
	assert.Equal(t, 2, v.Names[1].Wait)
	assert.InDelta(t, 7, v.Names[1].Waited, 0.01)
	assert.Equal(t, []string{"z: process 7 on h does not renew its lease; none waiting"}, v.Problems)
	assert.Equal(t, "process 4 on h", v.Names[1].Holders[0].Process)
	assert.Equal(t, "4", v.Names[1].Holders[0].Token)
}

// The nodes' word stands while too few answer, and is marked.
func TestUnsure(t *testing.T) {
	b := New()
	b.Observe(seen(0, held(claim(1, 8))))
	b.Observe(Observation{At: at(1), Trouble: "no quorum"})
	v := b.View()
	require.Len(t, v.Names, 1)
	assert.True(t, v.Names[0].Unsure)
	assert.Equal(t, "no quorum", v.Trouble)
	assert.Equal(t, 7.0, v.Names[0].Holders[0].Left)
}

func TestBounds(t *testing.T) {
	b := New()
	for i := range 2 * mostEvents {
		r := held(claim(i+1, 8))
		b.Observe(seen(float64(i)/10, r))
	}
	assert.LessOrEqual(t, len(b.events), mostEvents)
	b.Observe(seen(10000))
	assert.Len(t, b.View().Events, 1, "the rest is too long ago")
	var many []inspect.Report
	for i := range 2 * MostNames {
		r := held(claim(1, 8))
		r.Name = strconv.Itoa(i)
		many = append(many, r)
	}
	b = New()
	o := seen(10001, many...)
	o.Whole = false
	b.Observe(o)
	assert.Len(t, b.View().Names, MostNames)
	assert.Equal(t, 2*MostNames, b.View().Total)
	o = seen(10002, many[MostNames:]...)
	o.Whole = false
	b.Observe(o)
	assert.Empty(t, b.View().Events, "not known whether they were free")
	assert.Len(t, b.names, MostNames, "those that are not looked at are forgotten")
}

// Names, labels and errors of other clients change nothing in what shows them.
func TestUntrustedText(t *testing.T) {
	evil := "\x1b[2J\u202eevil\r\n\xff"
	r := held(claim(1, 8), claim(2, 8))
	r.Name, r.Holders[0].Note, r.Waiters[0].Host, r.Waiters[0].Label = evil, evil, evil, evil
	r.Kind, r.Record = inspect.Leader, &inspect.Record{ID: evil}
	r.Nodes = []inspect.Node{{Node: evil, Err: errors.New(evil)}}
	b := New()
	b.Observe(Observation{At: at(0), Whole: true, Nodes: []Node{{Name: evil, State: "ready", Up: true}}})
	o := seen(1, r)
	o.Nodes = []Node{{Name: evil, Cause: evil}}
	b.Observe(o)
	v := b.View()
	row := v.Names[0]
	for _, shown := range []string{row.Name, row.Record, row.Holders[0].Process, row.Waiters[0].Process,
		row.Nodes[0].Node, row.Nodes[0].Err, v.Nodes[0].Name, v.Nodes[0].Cause,
		v.Events[0].Text, v.Events[0].Subject} {
		assert.Contains(t, shown, `\x1b[2J\u202eevil\r\n\xff`)
		assert.NotContains(t, shown, "\x1b")
	}
	assert.Len(t, []rune(Printable(strings.Repeat("é", 10000))), widest)
}

func TestProblems(t *testing.T) {
	b := New()
	b.Observe(seen(0, held(claim(1, 8), claim(2, 8))))
	o := seen(7, held(claim(1, 1), claim(2, 8), claim(3, 8)))
	o.Nodes = []Node{{Name: "a", State: "unreachable", Cause: "refused"},
		{Name: "b", State: "votes in 9s", Up: true, Recovering: 9}, {Name: "c", State: "ready", Up: true}}
	b.Observe(o)
	assert.Equal(t, []string{
		"a is unreachable (refused)", "b lost its data or was restarted: votes in 9s",
		"job: process 1 on h does not renew its lease; 2 waiting, the longest for 7.0s",
	}, b.View().Problems)
	for s, want := range map[float64]string{0.04: "0.0s", 9.5: "9.5s", 75: "75s",
		3600: "1h0m", 400000: "5 days"} {
		assert.Equal(t, want, Seconds(s))
	}
}
