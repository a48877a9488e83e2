//go:build linux

package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
)

var leadFor = flag.Duration("lead", 10*time.Second, "how long processes campaign in TestLeaderFleet")

// fleet is processes that campaign, each with a way of its own to the servers,
// and what they have written down.
type fleet struct {
	t   *testing.T
	c   *redistest.Cluster
	ttl time.Duration
	ups chan outset

	late *lateness.Lateness // since the last fault

	mu      sync.Mutex
	members []*member
	logs    map[string][]string // by process
	all     sync.WaitGroup
}

type member struct {
	*process
	name  string
	ways  []*proxy.Proxy
	blind chan struct{} // closed when it observes no more
	ended chan struct{}
}

func (m *member) id() string { return fmt.Sprint("p", m.Pid()) }

// outset is the beginning of a term.
type outset struct {
	m    *member
	term uint64
	at   int64
}

// join adds a process.
func (f *fleet) join() {
	ways, urls := e2e.Proxies(f.t, f.c.URLs(), proxy.Fault{})
	w := startWorkerAt(f.t, urls, terms{Name: "e", TTL: f.ttl, Guard: 2*f.ttl + 20*time.Millisecond})
	m := &member{process: w, name: fmt.Sprint("process ", w.Pid()), ways: ways,
		blind: make(chan struct{}), ended: make(chan struct{})}
	f.mu.Lock()
	f.members = append(f.members, m)
	f.mu.Unlock()
	if w.tell(f.t, "lead run "+m.id()); len(f.members)%3 == 0 {
		w.tell(f.t, "lead observe")
	}
	f.all.Go(func() {
		for line := range w.lines {
			switch line {
			case "ignores":
				close(m.blind)
				continue
			case "ended":
				close(m.ended)
				continue
			}
			f.note(m, line)
			b := outset{m: m}
			if n, _ := fmt.Sscanf(line, "up %d %d", &b.term, &b.at); n == 2 {
				f.ups <- b
			}
		}
	})
}

func (f *fleet) note(m *member, line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logs[m.name] = append(f.logs[m.name], line)
}

// leads waits for the next term.
func (f *fleet) leads() outset {
	f.t.Helper()
	b := e2e.Receive(f.t, f.ups)
	return b
}

// faults are what can happen to the leader. Each returns what begins when the
// next one leads, and how long it took from the fault to that.
var faults = map[string]func(f *fleet, b outset) (next outset, took time.Duration){
	"resigns": func(f *fleet, b outset) (outset, time.Duration) {
		b.m.tell(f.t, "lead resign")
		next := f.leads()
		return next, time.Duration(next.at - f.ended(b))
	},
	"is killed": func(f *fleet, b outset) (outset, time.Duration) {
		killed := monotonic()
		require.NoError(f.t, b.m.Kill())
		next := f.leads()
		f.note(b.m, fmt.Sprint("killed ", killed))
		f.join()
		return next, time.Duration(next.at - killed)
	},
	"is stopped": func(f *fleet, b outset) (outset, time.Duration) {
		require.NoError(f.t, b.m.Stop())
		stopped := monotonic()
		next := f.leads()
		took := time.Duration(next.at - stopped)
		next = f.pause(f.ttl/4, next)
		require.NoError(f.t, b.m.Continue())
		return next, took
	},
	"is cut off": func(f *fleet, b outset) (outset, time.Duration) {
		for _, p := range b.m.ways {
			p.Hold()
		}
		cut := monotonic()
		next := f.leads()
		took := time.Duration(next.at - cut)
		next = f.pause(f.ttl/4, next)
		for _, p := range b.m.ways {
			p.Release()
		}
		return next, took
	},
}

// pause lets time pass: something is to go wrong at any time of a term, and not
// only when it has begun. It returns the newest term: where others are at work
// on the machine, a leader may lose without our doing.
func (f *fleet) pause(d time.Duration, b outset) outset {
	select {
	case <-time.After(d):
	case b = <-f.ups:
	}
	return b
}

// ended returns when a term that is over has ended.
func (f *fleet) ended(b outset) (at int64) {
	down := fmt.Sprintf("down %d ", b.term)
	require.True(f.t, e2e.Eventually(func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return slices.ContainsFunc(f.logs[b.m.name], func(line string) bool {
			n, _ := fmt.Sscanf(line, down+"%d", &at)
			return n == 1
		})
	}))
	return at
}

// Ten processes campaign, and again and again something happens to the leader.
// A process that has not taken part judges what they have written down.
func TestLeaderFleet(t *testing.T) {
	const size, ttl = 10, time.Second
	f := &fleet{t: t, c: redistest.Start(t, 3), ttl: ttl, ups: make(chan outset, 100),
		late: lateness.Measure(t), logs: map[string][]string{}}
	q := e2e.Open(t, f.c, e2e.Timing(ttl))
	ctx, cancel := context.WithCancel(t.Context())
	watching, lookAway := context.WithCancel(ctx)
	watched := make(chan struct{})
	f.all.Go(func() { defer close(watched); f.watch(watching, leader.New(q, "e", leader.WithID("watches"))) })
	t.Cleanup(f.all.Wait) // after the workers have been sent home
	defer cancel()
	for range size {
		f.join()
	}
	took := map[string][]time.Duration{}
	b := f.leads()
	for end := time.Now().Add(*leadFor); time.Now().Before(end); {
		for _, how := range slices.Sorted(maps.Keys(faults)) {
			for range map[bool]int{false: 1, true: 3}[how == "resigns"] {
				b = f.pause(rand.N(ttl/4), b)
				f.late.Reset()
				next, d := faults[how](f, b)
				require.NotSame(t, b.m, next.m, "the last leader is behind all others")
				assert.LessOrEqual(t, d, ttl+100*time.Millisecond+f.late.Allow(12), "the leader %s", how)
				took[how], b = append(took[how], d), next
			}
		}
	}
	// A process may be elected at the moment when it is to end: it records the
	// term and never leads. So all observers stop before the first process
	// ends.
	lookAway()
	<-watched
	f.goHome()
	cancel()

	f.mu.Lock()
	defer f.mu.Unlock()
	terms, err := judgeTerms(f.logs, false)
	require.NoError(t, err)
	for _, how := range slices.Sorted(maps.Keys(took)) {
		ds := took[how]
		slices.Sort(ds)
		t.Logf("the leader %s, %d times: the next one leads after %v (median), %v (max)", how,
			len(ds), ds[len(ds)/2], ds[len(ds)-1])
	}
	t.Logf("%d terms of %d processes; a round trip takes %v", len(terms), len(f.members), ping(t, f.c.URLs()))
	require.GreaterOrEqual(t, len(terms), len(took["resigns"]))
	buried(t, f.c, mutex.New(q, "e"))
}

// goHome has the processes that live observe no more, and then campaign no
// more.
func (f *fleet) goHome() {
	t := f.t
	var alive []*member
	for _, m := range f.members {
		if !f.killed(m) {
			alive = append(alive, m)
			m.tell(t, "lead ignore")
			e2e.Receive(t, m.blind)
		}
	}
	for _, m := range alive {
		m.tell(t, "lead end")
		e2e.Receive(t, m.ended)
	}
}

func (f *fleet) killed(m *member) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.logs[m.name],
		func(line string) bool { return strings.HasPrefix(line, "killed") })
}

// watch writes down the terms that an observer gets.
func (f *fleet) watch(ctx context.Context, e *leader.Election) {
	var last uint64
	for l, err := range e.Observe(ctx) {
		switch {
		case err == nil && l.Term > last:
			last = l.Term
			f.note(&member{name: "observer"}, fmt.Sprint("sees ", l.Term))
		case err != nil && !errors.Is(err, leader.ErrNoLeader) && !errors.Is(err, quorate.ErrNoQuorum):
			f.t.Errorf("observed: %v", err)
		}
	}
}
