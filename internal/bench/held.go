package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/semaphore"
)

// long returns options with leases so long that none is renewed during a
// measurement of something else.
func long() []quorate.Option { return timing(10*time.Minute, 30*time.Minute) }

// timing returns options for a ttl, a retention, and a guard time that fits
// them.
func timing(ttl, retention time.Duration) []quorate.Option {
	const skew = time.Second
	return []quorate.Option{quorate.WithTTL(ttl), quorate.WithSkew(skew), quorate.WithGuard(2*ttl + 2*skew),
		quorate.WithRetention(max(retention, 2*ttl+2*skew)),
		quorate.WithNodeTimeout(min(ttl/4, 200*time.Millisecond))}
}

// many calls f n times, with as much concurrency as makes a client fast.
func many(n int, f func(i int) error) error {
	const workers = 64
	var next atomic.Int64
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil; i = int(next.Add(1)) - 1 {
				errs[w] = f(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// heapInUse returns the size of the reachable heap.
func heapInUse() float64 {
	runtime.GC()
	runtime.GC() // once more, for what finalizers have released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// weigh returns how much memory f takes in this process and in one node, on
// average for each of n.
func weigh(ctx context.Context, nodes servers.Nodes, n int,
	f func() error) (client, node float64, err error) {
	before, heapBefore := nodes.Account(ctx).Memory, heapInUse()
	err = f()
	client = (heapInUse() - heapBefore) / float64(n)
	return client, (nodes.Account(ctx).Memory - before) / float64(n*nodes.Len()), err
}

// held measures one lock in a process that already holds k locks.
func held(k int) bench {
	return bench{
		Name: "held/" + strconv.Itoa(k), Group: "held", Series: "held", X: float64(k),
		Title: fmt.Sprintf("1 client, %d names held beside, N=5", k),
		Show:  []string{report.Mean, report.NodeTime, report.Heap, report.NodeBytes},
		open: func(ctx context.Context, st *stage) error {
			n, err := st.start(5)
			if err != nil {
				return err
			}
			for _, l := range []libraries.Library{
				{Name: report.QuorateName, Open: libraries.OpenQuorate(false, long()...), Commands: libraries.ByScript},
				{Name: report.FloorName, Open: libraries.OpenFloor(10 * time.Minute), Commands: libraries.ByBoth},
			} {
				if err := holdBeside(ctx, st, l, n, k); err != nil {
					return fmt.Errorf("%s: %w", l.Name, err)
				}
			}
			return nil
		},
	}
}

// steady is the number of locks from which the bytes per lock exceed the noise.
const steady = 1000

func holdBeside(ctx context.Context, st *stage, l libraries.Library, n servers.Nodes, k int) error {
	c, err := l.Open(ctx, n)
	if err != nil {
		return err
	}
	st.onClose(c.Close)
	// A name of typical length: 16 bytes.
	ms := make([]libraries.Locker, k)
	client, node, err := weigh(ctx, n, k, func() error {
		return many(k, func(i int) error {
			ms[i] = c.Mutex(fmt.Sprintf("%.2s held %08d", l.Name, i))
			return ms[i].Lock(ctx)
		})
	})
	if err != nil {
		return err
	}
	t := &team{
		scenario: scenario{Clients: 1, Nodes: n.Len()}, nodes: n, commands: l.Commands,
		lockers: []libraries.Locker{c.Mutex(l.Name)}, guards: []*libraries.Guard{{}},
	}
	st.sides = append(st.sides, side{l.Name, func(ctx context.Context, d time.Duration) (report.Figures, error) {
		f, err := t.turn(ctx, d)
		if k >= steady && err == nil {
			f[report.Heap], f[report.NodeBytes] = client, node
		}
		runtime.KeepAlive(ms)
		return f, err
	}})
	return nil
}

// renewal measures what k leases cost a process that only holds them. With a
// ttl of 30 s each lease is renewed every 10 s, so a turn should last that
// long.
func renewal(k int) bench {
	const ttl = 30 * time.Second
	return bench{
		Name: "renewal", Group: "renewal",
		Title: fmt.Sprintf("%d leases held and renewed by one process, ttl %v, N=5", k, ttl),
		Show: []string{report.Goroutines, report.Heap, report.NodeBytes, report.Renewals,
			report.ClientShare, report.ServerShare},
		open: func(ctx context.Context, st *stage) error {
			st.stretch = 25
			n, err := st.start(5)
			if err != nil {
				return err
			}
			before := runtime.NumGoroutine()
			q, err := libraries.Connect(ctx, n, timing(ttl, 0)...)
			if err != nil {
				return err
			}
			st.onClose(func() { _ = q.Close() })
			ms := make([]*mutex.Mutex, k)
			client, node, err := weigh(ctx, n, k, func() error {
				return many(k, func(i int) error {
					ms[i] = mutex.New(q, fmt.Sprintf("held by one %08d", i))
					return ms[i].LockContext(ctx)
				})
			})
			st.sides = []side{{report.QuorateName, func(ctx context.Context, d time.Duration) (report.Figures, error) {
				f, err := holding(ctx, n, d)
				for _, m := range ms {
					if err == nil {
						err = m.Lease().Context().Err() // a lost lease would be cheap to hold
					}
				}
				return f.And(report.Figures{report.Heap: client, report.NodeBytes: node,
					report.Goroutines: float64(runtime.NumGoroutine() - before)}), err
			}}}
			return err
		},
	}
}

// holding measures the traffic during d while no client calls anything.
func holding(ctx context.Context, n servers.Nodes, d time.Duration) (report.Figures, error) {
	before, began := n.Account(ctx), time.Now()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	after, took := n.Account(ctx), time.Since(began).Seconds()
	f := servers.Spent(before, after, libraries.ByScript, took)
	return report.Figures{
		report.Renewals: f[report.Requests], report.ClientShare: f[report.ClientCPU] / 1e6,
		report.ServerShare: f[report.ServerCPU] / 1e6,
	}, nil
}

// shortLived measures what n names that were locked only once leave behind: a
// node keeps the last ticket of each name for the retention.
func shortLived(n int) bench {
	// Long enough to lock all names and then look.
	retention := 5*time.Second + time.Duration(n)*250*time.Microsecond
	return bench{
		Name: "shortlived", Group: "shortlived", Title: fmt.Sprintf("%d names locked and unlocked once, N=5", n),
		Show: []string{report.LeftBytes, report.GoneBytes, report.LeftHeap},
		open: func(ctx context.Context, st *stage) error {
			st.single = true
			nodes, err := st.start(5)
			if err != nil {
				return err
			}
			q, err := libraries.Connect(ctx, nodes, timing(2*time.Second, retention)...)
			if err != nil {
				return err
			}
			st.onClose(func() { _ = q.Close() })
			st.sides = []side{{report.QuorateName, func(ctx context.Context, _ time.Duration) (report.Figures, error) {
				before := nodes.Account(ctx).Memory
				client, node, err := weigh(ctx, nodes, n, func() error {
					return many(n, func(i int) error {
						m := mutex.New(q, fmt.Sprintf("used once%08d", i))
						if err := m.LockContext(ctx); err != nil {
							return err
						}
						return libraries.Confirmed(m.UnlockContext(ctx))
					})
				})
				if err == nil {
					err = forgotten(ctx, nodes, retention)
				}
				gone := (nodes.Account(ctx).Memory - before) / float64(n*nodes.Len())
				return report.Figures{report.LeftBytes: node, report.LeftHeap: client, report.GoneBytes: gone}, err
			}}}
			return nil
		},
	}
}

// forgotten waits until the nodes have forgotten nearly all names, as they must
// soon after the retention.
func forgotten(ctx context.Context, n servers.Nodes, retention time.Duration) error {
	const few = 100 // markers, and expired keys that Redis's sampling has not found yet
	ctx, cancel := context.WithTimeout(ctx, 2*retention+time.Minute)
	defer cancel()
	for i := range n.Len() {
		for {
			size, err := n.Node(i).Client().DBSize(ctx).Result()
			if err != nil {
				return fmt.Errorf("after %v, unused names: %w", retention, err)
			}
			if size <= few {
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
	return nil
}

// permitsInUse measures a permit while k permits are in use.
func permitsInUse(k int) bench {
	return bench{
		Name: "permits/" + strconv.Itoa(k), Group: "permits", Series: "permits", X: float64(k),
		Title: fmt.Sprintf("1 client, %d permits already in use, N=5", k),
		Show:  []string{report.Mean, report.NodeTime},
		open: func(ctx context.Context, st *stage) error {
			n, err := st.start(5)
			if err != nil {
				return err
			}
			q, err := libraries.Connect(ctx, n, long()...)
			if err != nil {
				return err
			}
			st.onClose(func() { _ = q.Close() })
			s := semaphore.NewWeighted(q, "permits", int64(k)+1)
			// One after another: with 64 at a time and some thousand permits,
			// nodes answered so late that connections were given up.
			for range k {
				if err := s.Acquire(ctx, 1); err != nil {
					return err
				}
			}
			one := scenario{Clients: 1, Nodes: n.Len()}
			t := &team{scenario: one, nodes: n, commands: libraries.ByScript,
				lockers: []libraries.Locker{libraries.PermitOf(s)}, guards: []*libraries.Guard{{}}}
			st.sides = append(st.sides, side{report.QuorateName, t.turn})
			return one.join(ctx, st, libraries.Library{Name: report.FloorName,
				Open: libraries.OpenFloor(libraries.TTL), Commands: libraries.ByBoth}, report.FloorName, n)
		},
	}
}
