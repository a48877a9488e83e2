package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/redistest"
	"github.com/samber/lo"
)

// scenario is what each library has to do for the length of its turn.
type scenario struct {
	Name    string
	Nodes   int
	Clients int           // goroutines, each with a mutex of its own
	Quorums int           // they are spread over so many sets of connections, as if they were processes; 0: one
	Job     job           // what they do
	OneName bool          // they all want the same name; else each its own
	Hold    time.Duration // how long each keeps the lock
	Hung    int           // so many nodes are stopped (SIGSTOP) meanwhile
	Rate    bool          // what counts is locks per second; else the time of one
}

func scenarios(nodes int) []scenario {
	var list []scenario
	for _, n := range []int{1, 3, 5} {
		list = append(list, scenario{Name: "uncontended/" + strconv.Itoa(n), Nodes: n, Clients: 1})
	}
	list = append(list,
		scenario{Name: "names/64", Nodes: 5, Clients: 64, Rate: true},
		scenario{Name: "names/256", Nodes: 5, Clients: 256, Rate: true},
		scenario{Name: "queue/64", Nodes: 5, Clients: 64, OneName: true, Hold: 10 * time.Millisecond, Rate: true},
		scenario{Name: "hung/5", Nodes: 5, Clients: 1, Hung: 1},
		scenario{Name: "read-mostly", Nodes: 5, Clients: 32, Quorums: 4, Job: reading, Hold: time.Millisecond, Rate: true},
		scenario{Name: "semaphore", Nodes: 5, Clients: 64, Quorums: 4, Job: permits, Hold: 50 * time.Millisecond, Rate: true},
	)
	if nodes == 0 {
		return list
	}
	list = slices.DeleteFunc(list, func(s scenario) bool { return s.Name == "uncontended/3" || s.Name == "uncontended/5" })
	for i := range list {
		list[i].Nodes, list[i].Hung = nodes, min(list[i].Hung, (nodes-1)/2)
	}
	list[0].Name = "uncontended/" + strconv.Itoa(nodes)
	return list
}

func (s *scenario) title() string {
	t := "1 client"
	switch {
	case s.Job == reading:
		t = fmt.Sprintf("%d clients on %d Quorums, %d%% writes", s.Clients, s.Quorums, 100/writeEvery)
	case s.Job == permits:
		t = fmt.Sprintf("%d clients on %d Quorums, %d permits", s.Clients, s.Quorums, allPermits)
	case s.Clients > 1:
		t = fmt.Sprintf("%d clients on %s", s.Clients, lo.Ternary(s.OneName, "one name", "their own names"))
	}
	if s.Hold > 0 {
		t += fmt.Sprintf(", hold %s%v", lo.Ternary(s.Job == permits, "about ", ""), s.Hold)
	}
	t += fmt.Sprintf(", N=%d", s.Nodes)
	if s.Hung > 0 {
		t += fmt.Sprintf(", %d of them hung", s.Hung)
	}
	return t
}

// turn is what one library did in one turn.
type turn struct {
	Locks int     `json:"locks"`
	Mean  float64 `json:"mean_us"` // of lock and unlock together, without the hold
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	Rate  float64 `json:"per_second"`

	// Processor time per lock, all of this process and of the servers.
	ClientCPU float64 `json:"client_cpu_us"`
	ServerCPU float64 `json:"server_cpu_us"`
}

// Result is what a scenario gave.
type Result struct {
	scenario
	Title string
	Turns map[string][]turn // by library, one per round
}

// measure runs all rounds of one scenario, on servers of its own.
func measure(ctx context.Context, s scenario, set settings) (Result, error) {
	r := Result{scenario: s, Title: s.title(), Turns: map[string][]turn{}}
	cluster, err := redistest.Run(s.Nodes)
	if err != nil {
		return r, err
	}
	defer func() { _ = cluster.Close() }()
	libs := lo.Filter(libraries(s.Job), func(l library, _ int) bool {
		// The floor has no queue: it can only lock what is free.
		return set.libs.MatchString(l.name) && !(l.name == floorName && s.OneName)
	})
	teams := map[string]*team{}
	defer func() {
		for _, t := range teams {
			t.close()
		}
	}()
	for _, l := range libs {
		if teams[l.name], err = assemble(ctx, l, s, cluster); err != nil {
			return r, fmt.Errorf("%s: %w", l.name, err)
		}
	}
	for i := range s.Hung {
		if err := cluster.Node(s.Nodes - 1 - i).Stop(); err != nil {
			return r, err
		}
		defer func() { _ = cluster.Node(s.Nodes - 1 - i).Cont() }()
	}
	for round := range set.rounds + 1 {
		for _, l := range libs {
			t, err := teams[l.name].run(ctx, set.duration)
			if err != nil {
				return r, fmt.Errorf("%s: %w", l.name, err)
			}
			if round > 0 { // the first warms up connections, pools and caches
				r.Turns[l.name] = append(r.Turns[l.name], t)
			}
		}
	}
	return r, nil
}

// team is one library's clients.
type team struct {
	scenario
	cluster *redistest.Cluster
	lockers []locker
	close   func()
}

func assemble(ctx context.Context, l library, s scenario, c *redistest.Cluster) (*team, error) {
	var clients []client
	t := &team{scenario: s, cluster: c, close: func() {
		for _, c := range clients {
			c.Close()
		}
	}}
	for range max(1, s.Quorums) {
		client, err := l.open(ctx, c)
		if err != nil {
			t.close()
			return nil, err
		}
		clients = append(clients, client)
	}
	n := lo.Ternary(l.name == floorName && s.Job == permits, allPermits, s.Clients)
	for i := range n {
		t.lockers = append(t.lockers, clients[i*len(clients)/n].Mutex(l.name+" "+strconv.Itoa(s.name(l.name, i))))
	}
	return t, nil
}

// name is the number of the name that a library's client i wants.
func (s *scenario) name(library string, i int) int {
	switch {
	case library == floorName: // it can only lock what is free
		return i
	case s.Job == permits && library != quorateName:
		return i % allPermits
	case s.OneName || s.Job != working:
		return 0
	default:
		return i
	}
}

// run has every client lock and unlock for d.
func (t *team) run(ctx context.Context, d time.Duration) (turn, error) {
	runtime.GC() // what the one before has left is not this one's
	ctx, cancel := context.WithTimeout(ctx, d+30*time.Second)
	defer cancel()
	took := make([][]time.Duration, len(t.lockers))
	errs := make([]error, len(t.lockers))
	before := usedCPU(ctx, t.cluster)
	began := time.Now()
	t.each(func(i int, m locker) { took[i], errs[i] = t.client(ctx, m, began.Add(d)) })
	elapsed := time.Since(began)
	after := usedCPU(ctx, t.cluster)
	all := slices.Concat(took...)
	if len(all) == 0 {
		errs = append(errs, errors.New("not one lock was to be had"))
	}
	if err := errors.Join(errs...); err != nil {
		return turn{}, err
	}
	slices.Sort(all)
	n := float64(len(all))
	return turn{
		Locks: len(all),
		Mean:  micros(lo.Sum(all)) / n,
		P50:   micros(all[len(all)/2]),
		P99:   micros(all[len(all)*99/100]),
		Rate:  n / elapsed.Seconds(),

		ClientCPU: micros(after.clients-before.clients) / n,
		ServerCPU: micros(after.servers-before.servers) / n,
	}, nil
}

// each calls f for all clients at once, and waits.
func (t *team) each(f func(i int, m locker)) {
	var wg sync.WaitGroup
	for i, m := range t.lockers {
		wg.Go(func() { f(i, m) })
	}
	wg.Wait()
}

// client locks and unlocks until the given time, and tells how long each took.
func (t *team) client(ctx context.Context, m locker, until time.Time) ([]time.Duration, error) {
	took := make([]time.Duration, 0, 1<<12)
	for start := time.Now(); start.Before(until); {
		switch err := m.Lock(ctx); {
		case errors.Is(err, errGaveUp): // not an error, but not a lock either
			start = time.Now()
			continue
		case err != nil:
			return took, err
		}
		hold := t.Hold
		if t.Job == permits { // else all would come and go in step
			hold = t.Hold/2 + rand.N(t.Hold)
		}
		if hold > 0 {
			time.Sleep(hold)
		}
		if err := m.Unlock(ctx); err != nil {
			return took, err
		}
		now := time.Now()
		took = append(took, now.Sub(start)-hold)
		start = now
	}
	return took, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func median[T cmp.Ordered](v []T) T {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// value is a library's median figure: microseconds, or locks per second.
func (r *Result) value(lib string) float64 { return r.median(lib, r.figure) }

// cpu is a library's median processor time per lock, of clients and servers.
func (r *Result) cpu(lib string) float64 {
	return r.median(lib, func(t turn) float64 { return t.ClientCPU + t.ServerCPU })
}

func (r *Result) median(lib string, of func(turn) float64) float64 {
	if len(r.Turns[lib]) == 0 {
		return math.NaN()
	}
	return median(lo.Map(r.Turns[lib], func(t turn, _ int) float64 { return of(t) }))
}

func (r *Result) figure(t turn) float64 { return lo.Ternary(r.Rate, t.Rate, t.Mean) }

// ratio is the median over the rounds of a's figure divided by b's.
func (r *Result) ratio(a, b string) float64 {
	as, bs := r.Turns[a], r.Turns[b]
	if len(as) == 0 || len(bs) == 0 {
		return math.NaN()
	}
	return median(lo.Map(as, func(t turn, i int) float64 { return r.figure(t) / r.figure(bs[i]) }))
}
