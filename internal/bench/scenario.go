package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
)

// scenario is a number of clients that lock and unlock without a pause.
type scenario struct {
	Clients int // goroutines, each with a mutex of its own
	// The clients are spread over this many sets of connections, as if these
	// were processes; 0 means one.
	Quorums int
	Job     libraries.Job // what they do
	OneName bool          // all clients use the same name; otherwise each has its own
	Shared  bool          // the clients of one process share one mutex, if the library supports that
	Hold    time.Duration // how long each keeps the lock
	Nodes   int
	Away    time.Duration // round trip to each node, through a proxy
	Trouble trouble       // with one of the nodes
	Only    []string      // the libraries; nil means all that can do the job
	Stretch float64       // see stage
	Times   int           // how often each client locks; 0: until its turn is over
}

// bench makes a bench of it.
func (s scenario) bench(name, group string, show ...string) bench {
	return bench{Name: name, Group: group, Title: s.title(), Show: show, open: s.open}
}

func (s *scenario) title() string {
	t := "1 client"
	switch {
	case s.Job == libraries.Reading:
		t = fmt.Sprintf("%d clients on %d Quorums, %d%% writes", s.Clients, s.Quorums, 100/libraries.WriteEvery)
	case s.Job == libraries.Permits:
		t = fmt.Sprintf("%d clients on %d Quorums, %d permits", s.Clients, s.Quorums, libraries.AllPermits)
	case s.Shared:
		t = fmt.Sprintf("%d goroutines of a process on one name", s.Clients)
	case s.Quorums > 1:
		t = fmt.Sprintf("%d clients on one name, each with connections of its own", s.Clients)
	case s.Clients > 1:
		t = fmt.Sprintf("%d clients on %s", s.Clients, lo.Ternary(s.OneName, "one name", "their own names"))
	}
	if s.Hold > 0 {
		t += fmt.Sprintf(", hold %s%v", lo.Ternary(s.Job == libraries.Permits, "about ", ""), s.Hold)
	}
	t += fmt.Sprintf(", N=%d", s.Nodes)
	if s.Away > 0 {
		t += fmt.Sprintf(", %v away", s.Away)
	}
	if s.Trouble != none {
		t += fmt.Sprintf(", one node %v", s.Trouble)
	}
	return t
}

// takes reports whether a library takes part.
func (s *scenario) takes(l libraries.Library, st *stage) bool {
	return st.libs.MatchString(l.Name) && (s.Only == nil || slices.Contains(s.Only, l.Name)) &&
		(s.Nodes == 1 || !l.OneNode) && (s.Shared || l.Name != report.SyncName) &&
		(l.Name != report.FencedName || s.Trouble == none && s.Hold == 0) &&
		// The floor has no queue, so it can only lock free names.
		(l.Name != report.FloorName && l.Name != report.FencedName || !s.OneName)
}

// open assembles a team of each library.
func (s scenario) open(ctx context.Context, st *stage) error {
	st.stretch = s.Stretch
	n, err := st.start(s.Nodes)
	if err != nil {
		return err
	}
	if s.Away > 0 {
		if n, err = away(st, n, s.Away); err != nil {
			return err
		}
	}
	through, cause, err := s.Trouble.prepare(st, n)
	if err != nil {
		return err
	}
	for _, l := range libraries.Of(s.Job) {
		if s.takes(l, st) {
			if err := s.join(ctx, st, l, l.Name, through); err != nil {
				return err
			}
		}
	}
	if s.Trouble != none { // compare with the same scenario without trouble
		whole, err := st.start(s.Nodes)
		if err != nil {
			return err
		}
		if err := s.join(ctx, st, libraries.Of(s.Job)[0], report.HealthyName, whole); err != nil {
			return err
		}
	}
	return cause()
}

// join adds a library's team to the sides.
func (s scenario) join(ctx context.Context, st *stage, l libraries.Library,
	as string, n servers.Nodes) error {
	t, err := assemble(ctx, l, s, n)
	if err != nil {
		return fmt.Errorf("%s: %w", as, err)
	}
	st.onClose(t.close)
	st.sides = append(st.sides, side{as, t.turn})
	return nil
}

// team is the clients of one library.
type team struct {
	scenario
	nodes    servers.Nodes
	commands []string
	lockers  []libraries.Locker
	guards   []*libraries.Guard // for each locker's name
	close    func()
}

func assemble(ctx context.Context, l libraries.Library, s scenario, nodes servers.Nodes) (*team, error) {
	var clients []libraries.Client
	t := &team{scenario: s, nodes: nodes, commands: l.Commands, close: func() {
		for _, c := range clients {
			c.Close()
		}
	}}
	for range max(1, s.Quorums) {
		client, err := l.Open(ctx, nodes)
		if err != nil {
			t.close()
			return nil, err
		}
		clients = append(clients, client)
	}
	n := lo.Ternary(l.Name == report.FloorName && s.Job == libraries.Permits, libraries.AllPermits, s.Clients)
	guards := map[int]*libraries.Guard{}
	var m libraries.Locker
	for i := range n {
		name := s.name(l, i)
		if m == nil || !s.Shared || !l.Shares {
			m = clients[i*len(clients)/n].Mutex(l.Name + " " + strconv.Itoa(name))
		}
		if guards[name] == nil {
			guards[name] = &libraries.Guard{}
		}
		t.lockers, t.guards = append(t.lockers, m), append(t.guards, guards[name])
	}
	return t, nil
}

// name is the number of the name that a library's client i wants.
func (s *scenario) name(l libraries.Library, i int) int {
	switch {
	case l.Name == report.FloorName: // the floor can only lock free names
		return i
	case s.Job == libraries.Permits && !l.Permits:
		return i % libraries.AllPermits
	case s.OneName || s.Job != libraries.Working:
		return 0
	default:
		return i
	}
}

// trip is one lock and unlock.
type trip struct{ lock, hold, unlock time.Duration }

// turn makes every client lock and unlock for d.
func (t *team) turn(ctx context.Context, d time.Duration) (report.Figures, error) {
	runtime.GC() // collect the garbage of the previous turn
	ctx, cancel := context.WithTimeout(ctx, d+45*time.Second)
	defer cancel()
	trips := make([][]trip, len(t.lockers))
	errs := make([]error, len(t.lockers))
	before := t.nodes.Account(ctx)
	began := time.Now()
	t.each(func(i int, m libraries.Locker) { trips[i], errs[i] = t.client(ctx, m, t.guards[i], began.Add(d)) })
	elapsed := time.Since(began)
	after := t.nodes.Account(ctx)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := slices.Concat(trips...)
	if len(all) == 0 {
		return nil, errors.New("no lock could be acquired")
	}
	f := t.tell(all, elapsed).And(servers.Spent(before, after, t.commands, float64(len(all))))
	served := lo.Map(trips, func(of []trip, _ int) float64 { return float64(len(of)) })
	f[report.ServedLeast], f[report.ServedMost] = slices.Min(served), slices.Max(served)
	return f, nil
}

// tell computes figures from the measurements of the clients.
func (t *team) tell(all []trip, elapsed time.Duration) report.Figures {
	n := float64(len(all))
	held := lo.SumBy(all, func(t trip) time.Duration { return t.hold })
	percentiles := func(of func(trip) time.Duration) (p50, p99, mean float64) {
		v := lo.Map(all, func(t trip, _ int) time.Duration { return of(t) })
		slices.Sort(v)
		return report.Micros(v[len(v)/2]), report.Micros(v[len(v)*99/100]), report.Micros(lo.Sum(v)) / n
	}
	f := report.Figures{report.PerSecond: n / elapsed.Seconds()}
	if t.Times == 1 {
		f[report.AllServed] = report.Micros(elapsed) / 1e3
		f[report.FirstServed] = report.Micros(lo.MinBy(all,
			func(a, b trip) bool { return a.lock < b.lock }).lock) / 1e3
	}
	f[report.P50], f[report.P99], f[report.Mean] = percentiles(func(t trip) time.Duration {
		return t.lock + t.unlock
	})
	f[report.LockP50], f[report.LockP99], _ = percentiles(func(t trip) time.Duration { return t.lock })
	_, f[report.UnlockP99], _ = percentiles(func(t trip) time.Duration { return t.unlock })
	if t.OneName && t.Hold > 0 {
		// Share of the possible rate, given the actual holds.
		f[report.Share] = held.Seconds() / elapsed.Seconds()
		f[report.WaitRatio] = f[report.LockP99] * n / report.Micros(held) / float64(max(1, t.Clients-1))
	}
	return f
}

// each calls f for all clients at once, and waits.
func (t *team) each(f func(i int, m libraries.Locker)) {
	var wg sync.WaitGroup
	for i, m := range t.lockers {
		wg.Go(func() { f(i, m) })
	}
	wg.Wait()
}

// client locks and unlocks until the given time, and returns how long each step
// took.
func (t *team) client(ctx context.Context, m libraries.Locker, g *libraries.Guard,
	until time.Time) ([]trip, error) {
	trips := make([]trip, 0, 1<<10)
	for start := time.Now(); start.Before(until) && (t.Times == 0 || len(trips) < t.Times); {
		err := libraries.Insist(ctx, m)
		if err == nil {
			err = g.Enter(m)
		}
		if err != nil {
			return trips, err
		}
		locked := time.Now()
		if t.Hold > 0 {
			hold := t.Hold
			if t.Job == libraries.Permits { // otherwise all would come and go in step
				hold = t.Hold/2 + rand.N(t.Hold)
			}
			time.Sleep(hold)
		}
		g.Leave(m)
		done := time.Now()
		if err := m.Unlock(ctx); err != nil {
			return trips, err
		}
		now := time.Now()
		trips = append(trips, trip{locked.Sub(start), done.Sub(locked), now.Sub(done)})
		start = now
	}
	return trips, nil
}
