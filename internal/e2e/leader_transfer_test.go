//go:build linux

package e2e_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

var transferTimes = flag.Int("transfers", 100, "how many transfers there are in TestLeaderTransfers")

// transfers are what can happen to a transfer from the leader to a candidate.
// Each returns what begins when the next one leads, and how long it took from
// the end of the term or, if there is a fault, from that.
var transfers = map[string]func(f *fleet, b outset, to *member) (next outset, took time.Duration){
	"": func(f *fleet, b outset, to *member) (outset, time.Duration) {
		b.m.tell(f.t, "lead transfer "+to.id())
		next := f.leads()
		return next, time.Duration(next.at - f.ended(b))
	},
	"to a process that is killed": func(f *fleet, b outset, to *member) (outset, time.Duration) {
		before := rand.IntN(2) == 0
		if !before {
			b.m.tell(f.t, "lead transfer "+to.id())
			time.Sleep(rand.N(5 * time.Millisecond))
		}
		killed := monotonic()
		require.NoError(f.t, to.Kill())
		if before {
			b.m.tell(f.t, "lead transfer "+to.id())
		}
		next := f.leads()
		if next.m == to { // it has led before it was killed
			next = f.leads()
		}
		f.note(to, fmt.Sprint("killed ", killed))
		f.join()
		return next, time.Duration(next.at - killed)
	},
	"from a leader that is killed": func(f *fleet, b outset, to *member) (outset, time.Duration) {
		b.m.tell(f.t, "lead transfer "+to.id())
		time.Sleep(rand.N(5 * time.Millisecond))
		killed := monotonic()
		require.NoError(f.t, b.m.Kill())
		next := f.leads()
		f.note(b.m, fmt.Sprint("killed ", killed))
		f.join()
		return next, time.Duration(next.at - killed)
	},
	"from a leader that is cut off": func(f *fleet, b outset, to *member) (outset, time.Duration) {
		b.m.tell(f.t, "lead transfer "+to.id())
		time.Sleep(rand.N(5 * time.Millisecond))
		return f.without(b.m)
	},
	"to a process that is cut off": func(f *fleet, b outset, to *member) (outset, time.Duration) {
		b.m.tell(f.t, "lead transfer "+to.id())
		time.Sleep(rand.N(5 * time.Millisecond))
		return f.without(to)
	},
	"from a leader without one of the nodes": func(f *fleet, b outset, to *member) (outset, time.Duration) {
		return f.partly(b.m, b, to)
	},
	"to a process without one of the nodes": func(f *fleet, b outset, to *member) (outset, time.Duration) {
		return f.partly(to, b, to)
	},
}

// partly cuts a process off from one node during a transfer, before it or in
// the middle.
func (f *fleet) partly(m *member, b outset, to *member) (outset, time.Duration) {
	way, before := m.ways[rand.IntN(len(m.ways))], rand.IntN(2) == 0
	if before {
		way.Hold()
	}
	b.m.tell(f.t, "lead transfer "+to.id())
	if !before {
		time.Sleep(rand.N(5 * time.Millisecond))
		way.Hold()
	}
	next := f.leads()
	took := time.Duration(next.at - f.ended(b))
	way.Release()
	return next, took
}

// without cuts a process off until another one leads.
func (f *fleet) without(m *member) (next outset, took time.Duration) {
	for _, p := range m.ways {
		p.Hold()
	}
	cut := monotonic()
	for next = f.leads(); next.m == m; next = f.leads() { // it leads without our doing
	}
	for _, p := range m.ways {
		p.Release()
	}
	return next, time.Duration(next.at - cut)
}

// candidate returns a process that waits: not the leader, nor the one before,
// which may not be in line yet.
func (f *fleet) candidate(b outset, last *member) *member {
	for {
		if m := f.members[rand.IntN(len(f.members))]; m != b.m && m != last && !f.killed(m) {
			return m
		}
	}
}

// Leaders hand over to chosen candidates, while processes are killed and cut
// off. A process that has not taken part judges what they have written down.
func TestLeaderTransfers(t *testing.T) {
	// Up to six candidates step back, one after the other.
	const size, ttl, stepBack = 8, time.Second, 25 * time.Millisecond
	f := &fleet{t: t, c: redistest.Start(t, 3), ttl: ttl, ups: make(chan outset, 100),
		late: lateness.Measure(t), logs: map[string][]string{}}
	t.Cleanup(f.all.Wait) // after the workers have been sent home
	q := e2e.Open(t, f.c, e2e.Timing(ttl))
	for range size {
		f.join()
	}
	var faulty []string
	for how := range transfers {
		if how != "" {
			faulty = append(faulty, how)
		}
	}
	slices.Sort(faulty)
	took, chosen := map[string][]time.Duration{}, map[string]int{}
	b, last := f.leads(), (*member)(nil)
	for i := range *transferTimes {
		how := ""
		if i%2 == 1 {
			how = faulty[i/2%len(faulty)]
		}
		b = f.pause(rand.N(ttl/10), b)
		f.late.Reset()
		to := f.candidate(b, last)
		next, d := transfers[how](f, b, to)
		assert.LessOrEqual(t, d, ttl+100*time.Millisecond+size*stepBack+f.late.Allow(40), "transfer %s", how)
		if next.m == to {
			chosen[how]++
		}
		took[how], b, last = append(took[how], d), next, b.m
	}
	f.goHome()
	f.mu.Lock()
	defer f.mu.Unlock()
	terms, err := judgeTerms(f.logs, true)
	require.NoError(t, err)
	for how, ds := range took {
		slices.Sort(ds)
		t.Logf("%d transfers %s: the chosen one was next %d times; the next one led after %v (median), %v (max)",
			len(ds), how, chosen[how], ds[len(ds)/2], ds[len(ds)-1])
	}
	t.Logf("%d terms of %d processes", len(terms), len(f.members))
	require.Greater(t, chosen[""], len(took[""])/2)
	buried(t, f.c, mutex.New(q, "e"))
}
