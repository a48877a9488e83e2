package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/flight"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/members"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/period"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
	"github.com/quorate/quorate/shards"
)

// A nil context is the caller's mistake: a call panics in the goroutine of the
// caller, where it can be found and recovered, or fails, or succeeds. A panic in
// a goroutine of the library would end the process, and this test.
func TestNilContext(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q := e2e.Open(t, c, e2e.Timing(4*time.Second))
	none := context.Context(nil)
	f := func(context.Context) error { return nil }
	sem := semaphore.NewWeighted(q, "semaphore", 2)
	held, rwheld := mutex.New(q, "held"), rwmutex.New(q, "rwheld")
	assert.NoError(t, held.LockContext(t.Context()))
	assert.NoError(t, rwheld.LockContext(t.Context()))
	rwunlocked, rwread := rwmutex.New(q, "rwunlocked"), rwmutex.New(q, "rwread")
	assert.NoError(t, rwunlocked.LockContext(t.Context()))
	assert.NoError(t, rwread.RLockContext(t.Context()))
	calls := map[string]func() error{
		"Connect":            func() error { _, err := quorate.Connect(none, c.URLs()); return err },
		"Bootstrap":          func() error { return q.Bootstrap(none) },
		"Check":              func() error { _, err := q.Check(none); return err },
		"mutex.Lock":         func() error { return mutex.New(q, "a").LockContext(none) },
		"mutex.Lock, held":   func() error { return mutex.New(q, "held").LockContext(none) },
		"mutex.TryLock":      func() error { return mutex.New(q, "b").TryLockContext(none) },
		"mutex.Do":           func() error { return mutex.New(q, "c").Do(none, f) },
		"mutex.Holder":       func() error { _, err := held.Holder(none); return err },
		"mutex.Extend":       func() error { return held.Extend(none) },
		"mutex.Unlock":       func() error { return held.UnlockContext(none) },
		"mutex.All":          func() error { return mutex.All(q, []string{"d", "e"}).LockContext(none) },
		"mutex.All, Try":     func() error { return mutex.All(q, []string{"d2", "e2"}).TryLockContext(none) },
		"mutex.All, Do":      func() error { return mutex.All(q, []string{"f", "g"}).Do(none, f) },
		"rwmutex.Lock":       func() error { return rwmutex.New(q, "h").LockContext(none) },
		"rwmutex.TryLock":    func() error { return rwmutex.New(q, "h1").TryLockContext(none) },
		"rwmutex.RLock":      func() error { return rwmutex.New(q, "i").RLockContext(none) },
		"rwmutex.TryRLock":   func() error { return rwmutex.New(q, "i1").TryRLockContext(none) },
		"rwmutex.Do":         func() error { return rwmutex.New(q, "j").Do(none, f) },
		"rwmutex.RDo":        func() error { return rwmutex.New(q, "k").RDo(none, f) },
		"rwmutex.Holder":     func() error { _, err := rwheld.Holder(none); return err },
		"rwmutex.Extend":     func() error { return rwheld.Extend(none) },
		"rwmutex.Unlock":     func() error { return rwunlocked.UnlockContext(none) },
		"rwmutex.RUnlock":    func() error { return rwread.RUnlockContext(none) },
		"rwmutex.Downgrade":  func() error { return rwheld.Downgrade(none) },
		"semaphore.Acquire":  func() error { return sem.Acquire(none, 1) },
		"semaphore.Lease":    func() error { _, err := sem.AcquireLease(none, 1); return err },
		"semaphore.TryLease": func() error { _, err := sem.TryAcquireLease(none, 1); return err },
		"semaphore.Holder":   func() error { _, err := sem.Holder(none); return err },
		"semaphore.Resize":   func() error { return sem.Resize(none, 3) },
		"semaphore.Size":     func() error { _, err := sem.Size(none); return err },
		"once.Do":            func() error { return once.New(q, "l").DoContext(none, f) },
		"once.Holder":        func() error { _, err := once.New(q, "m").Holder(none); return err },
		"once.Reset":         func() error { return once.New(q, "n").Reset(none) },
		"once.Status":        func() error { _, err := once.New(q, "o").Status(none); return err },
		"once.Value":         func() error { _, err := once.ValueContext(q, "o1", value)(none); return err },
		"leader.Campaign":    func() error { return leader.New(q, "p").Campaign(none, "") },
		"leader.Holder":      func() error { _, err := leader.New(q, "q").Holder(none); return err },
		"leader.Leader":      func() error { _, err := leader.New(q, "r").Leader(none); return err },
		"leader.Proclaim":    func() error { return leader.New(q, "s").Proclaim(none, "") },
		"leader.Resign":      func() error { return leader.New(q, "t").Resign(none) },
		"leader.Run":         func() error { return leader.New(q, "u").Run(none, leader.Callbacks{}) },
		"leader.Run, working": func() error {
			return leader.New(q, "u1").Run(none,
				leader.Callbacks{OnStartedLeading: func(context.Context, quorate.Lease) {}})
		},
		"leader.Observe": func() error {
			for _, err := range leader.New(q, "v").Observe(none) {
				return err
			}
			return nil
		},
		"period.Do":   func() error { _, err := period.New(q, "w", time.Hour).Do(none, f); return err },
		"period.Last": func() error { _, err := period.New(q, "x", time.Hour).Last(none); return err },
		"period.Wait": func() error { return period.New(q, "y", time.Hour).Wait(none) },
		"flight.Do":   func() error { _, err := flight.New[int](q, "z:").Do(none, "k", 0, value); return err },
		"shards.Run":  func() error { return shards.New(q, "sh", 2).Run(none, nil) },
		"shards.Run, f": func() error {
			return shards.New(q, "sh2", 2).Run(none, func(context.Context, int, quorate.Lease) error { return nil })
		},
		"members.Add":    func() error { return members.Add(none, q, "redis://127.0.0.1:1") },
		"members.Get":    func() error { _, err := members.Get(none, q); return err },
		"members.Move":   func() error { return members.Move(none, q, c.Node(0).Addr(), "127.0.0.1:1") },
		"members.Remove": func() error { return members.Remove(none, q, c.Node(0).Addr()) },
		"members.Replace": func() error {
			return members.Replace(none,
				q, c.Node(0).Addr(), "redis://127.0.0.1:1")
		},
		"members.Set":   func() error { return members.Set(none, q, members.Settings{}) },
		"members.Undo":  func() error { return members.Undo(none, q) },
		"inspect.Evict": func() error { return inspect.Evict(none, q, "a", 1) },
		"inspect.Name":  func() error { _, err := inspect.Name(none, q, "a"); return err },
		"inspect.Names": func() error {
			for _, err := range inspect.Names(none, q, "") {
				return err
			}
			return nil
		},
	}
	for name, call := range calls {
		over := make(chan string, 1)
		go func() {
			defer func() { over <- fmt.Sprint(recover()) }()
			over <- fmt.Sprint(call())
		}()
		select {
		case is := <-over:
			t.Logf("%s: %.80s", name, is)
		case <-time.After(e2e.Patience):
			t.Errorf("%s waits", name)
		}
	}
}

func value(context.Context) (int, error) { return 1, nil }
