package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/rwmutex"
)

// local measures a call that sends no request, next to the equivalent call of
// package sync.
func local(name, title string, ours func(context.Context,
	*quorate.Quorum) (call, error), theirs func() call) bench {
	return bench{
		Name: "local/" + name, Group: "local", Title: title, Show: []string{report.PerCall},
		open: func(ctx context.Context, st *stage) error {
			n, err := st.start(5)
			if err != nil {
				return err
			}
			q, err := libraries.Connect(ctx, n)
			if err != nil {
				return err
			}
			st.onClose(func() { _ = q.Close() })
			f, err := ours(ctx, q)
			if err != nil {
				return err
			}
			st.sides = []side{
				{report.QuorateName, func(ctx context.Context, d time.Duration) (report.Figures, error) {
					before := n.Account(ctx)
					calls, took, err := f.loop(d)
					// Occasionally a lingering claim is renewed. After 1,024
					// holds it has no more tokens, and a new claim takes two
					// requests.
					asked := servers.Spent(before, n.Account(ctx), libraries.ByScript, 1)[report.Requests]
					if err == nil && asked > 2+d.Seconds()+float64(calls)/500 {
						err = fmt.Errorf("%d calls that were to cost no request have cost a node %.0f", calls, asked)
					}
					return report.Figures{report.PerCall: took}, err
				}},
				{report.SyncName, func(_ context.Context, d time.Duration) (report.Figures, error) {
					_, took, err := theirs().loop(d)
					return report.Figures{report.PerCall: took}, err
				}},
			}
			return nil
		},
	}
}

// call is a call that is repeated.
type call func() error

// loop returns how often f was called, and how many nanoseconds one call took.
func (f call) loop(d time.Duration) (calls int, took float64, err error) {
	const batch = 256 // reading the clock costs more than some of these calls
	began := time.Now()
	for time.Since(began) < d {
		for range batch {
			err = errors.Join(err, f())
		}
		calls += batch
	}
	return calls, float64(time.Since(began)) / float64(calls), err
}

func locals() []bench {
	return []bench{
		local("linger", "lock again, the claim kept by WithLinger", relock, func() call {
			var m sync.Mutex
			return func() error { m.Lock(); defer m.Unlock(); return nil }
		}),
		local("rlock", "RLock while this process reads", readAgain, func() call {
			var m sync.RWMutex
			m.RLock()
			return func() error { m.RLock(); defer m.RUnlock(); return nil }
		}),
		local("once", "Once that is done", doneAlready, func() call {
			var o sync.Once
			return func() error { o.Do(func() {}); return nil }
		}),
	}
}

func relock(ctx context.Context, q *quorate.Quorum) (call, error) {
	m := mutex.New(q, "again", quorate.WithLinger(time.Minute))
	f := func() error { m.Lock(); defer m.Unlock(); return nil }
	return f, m.Do(ctx, func(context.Context) error { return nil })
}

func readAgain(ctx context.Context, q *quorate.Quorum) (call, error) {
	m := rwmutex.New(q, "read")
	f := func() error { m.RLock(); defer m.RUnlock(); return nil }
	return f, m.RLockContext(ctx) // closing the Quorum ends the hold
}

func doneAlready(ctx context.Context, q *quorate.Quorum) (call, error) {
	runs := 0
	o := once.New(q, "done")
	f := func() error {
		o.Do(func() { runs++ })
		if runs != 1 {
			return errors.New("run " + strconv.Itoa(runs))
		}
		return nil
	}
	return f, o.DoContext(ctx, func(context.Context) error { runs++; return nil })
}
