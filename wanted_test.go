package quorate_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/flight"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// wants are what has a process hold a name, and another one wait for it. Each
// returns the lease, and with it the wait of the other process, which ends with
// its context.
var wants = map[string]struct {
	pushed bool // the nodes tell at once that another waits
	hold   func(t *testing.T, q, other *quorate.Quorum) (quorate.Lease, func(context.Context))
}{
	"mutex": {true, func(t *testing.T, q, other *quorate.Quorum) (quorate.Lease, func(context.Context)) {
		m := mutex.New(q, "m")
		require.NoError(t, m.LockContext(soon(t)))
		return m.Lease(), func(ctx context.Context) { _ = mutex.New(other, "m").LockContext(ctx) }
	}},
	"group": {true, func(t *testing.T, q, other *quorate.Quorum) (quorate.Lease, func(context.Context)) {
		g := mutex.All(q, []string{"g", "h"})
		require.NoError(t, g.LockContext(soon(t)))
		return g.Lease("h"), func(ctx context.Context) { _ = mutex.New(other, "h").LockContext(ctx) }
	}},
	"readers": {true, func(t *testing.T, q, other *quorate.Quorum) (quorate.Lease, func(context.Context)) {
		m := rwmutex.New(q, "rw")
		require.NoError(t, m.RLockContext(soon(t)))
		return m.RLease(), func(ctx context.Context) { _ = rwmutex.New(other, "rw").LockContext(ctx) }
	}},
	"semaphore": {false, func(t *testing.T, q, other *quorate.Quorum) (quorate.Lease, func(context.Context)) {
		l, err := semaphore.NewWeighted(q, "s", 2).AcquireLease(soon(t), 2)
		require.NoError(t, err)
		return l, func(ctx context.Context) { _ = semaphore.NewWeighted(other, "s", 2).Acquire(ctx, 1) }
	}},
	"leader": {false, func(t *testing.T, q, other *quorate.Quorum) (quorate.Lease, func(context.Context)) {
		e := leader.New(q, "e")
		require.NoError(t, e.Campaign(soon(t), ""))
		return e.Lease(), func(ctx context.Context) { _ = leader.New(other, "e").Campaign(ctx, "") }
	}},
	"once": {false, func(t *testing.T, q, other *quorate.Quorum) (quorate.Lease, func(context.Context)) {
		leases, end := make(chan quorate.Lease), make(chan struct{})
		t.Cleanup(func() { close(end) })
		go func() {
			_ = once.New(q, "o").DoContext(t.Context(), func(ctx context.Context) error {
				leases <- once.Lease(ctx)
				<-end
				return nil
			})
		}()
		return e2e.Receive(t, leases), func(ctx context.Context) {
			_ = once.New(other, "o").DoContext(ctx, func(context.Context) error { return nil })
		}
	}},
}

// soon ends where what should take moments does not come.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), e2e.Patience)
	t.Cleanup(cancel)
	return ctx
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A holder learns that another process waits: at once where nodes push that,
// else with the next renewal.
func TestWanted(t *testing.T) {
	for what, w := range wants {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := quoratetest.New(t, 3)
				l, wait := w.hold(t, c.Quorum(), c.Quorum())
				wanted := l.Wanted()
				time.Sleep(time.Minute)
				require.False(t, isClosed(wanted), "no other waits")
				ctx, cancel := context.WithCancel(t.Context())
				go wait(ctx)
				synctest.Wait()
				if !w.pushed {
					time.Sleep(8*time.Second/3 + time.Millisecond) // of the ttl
					synctest.Wait()
				}
				assert.True(t, isClosed(wanted))
				assert.True(t, isClosed(l.Wanted()), "asked later")
				cancel()
				time.Sleep(time.Minute)
				assert.True(t, isClosed(l.Wanted()), "that one has given up")
			})
		})
	}
}

// The same on servers.
func TestWantedOnServers(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	for what, w := range wants {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ttl := 4 * time.Second
			if w.pushed {
				ttl = time.Hour // no renewal tells it
			}
			timing := e2e.Guarded(ttl, 3*time.Hour) // the set has one guard time
			l, wait := w.hold(t, e2e.Open(t, c, timing), e2e.Open(t, c, timing))
			require.False(t, isClosed(l.Wanted()))
			ctx, cancel := context.WithCancel(t.Context())
			waited := make(chan struct{})
			go func() {
				defer close(waited)
				wait(ctx)
			}()
			e2e.Receive(t, l.Wanted())
			cancel()
			e2e.Receive(t, waited)
		})
	}
}

// Goroutines of one process wait for each other, and each has its own turn.
func TestWantedByAnotherGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mutex.New(quoratetest.New(t, 3).Quorum(quorate.WithLinger(time.Minute)), "m")
		m.Lock()
		first := m.Lease()
		require.False(t, isClosed(first.Wanted()))
		locked := make(chan struct{})
		for range 2 {
			go func() {
				m.Lock()
				locked <- struct{}{}
			}()
		}
		synctest.Wait()
		assert.True(t, isClosed(first.Wanted()))
		m.Unlock()
		<-locked
		second := m.Lease()
		assert.True(t, isClosed(second.Wanted()), "the third waits")
		m.Unlock()
		<-locked
		third := m.Lease()
		synctest.Wait()
		assert.False(t, isClosed(third.Wanted()), "none waits")
		m.Unlock()
		m.Lock() // under the claim that lingers
		synctest.Wait()
		assert.False(t, isClosed(third.Wanted()), "its hold has ended")
		assert.False(t, isClosed(m.Lease().Wanted()))
		m.Unlock()
	})
}

// The goroutines that share a Group wait for each other, too.
func TestWantedByAnotherGoroutineOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := mutex.All(quoratetest.New(t, 3).Quorum(), []string{"g", "h"})
		require.NoError(t, g.LockContext(t.Context()))
		first := g.Lease("h")
		require.False(t, isClosed(first.Wanted()))
		locked := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{ctx, t.Context(), t.Context()} {
			go func() {
				if g.LockContext(ctx) == nil {
					locked <- struct{}{}
				}
			}()
			synctest.Wait()
			assert.True(t, isClosed(first.Wanted()))
		}
		cancel()
		synctest.Wait()
		g.Unlock()
		<-locked
		assert.True(t, isClosed(g.Lease("g").Wanted()), "another one waits")
		g.Unlock()
		<-locked
		assert.False(t, isClosed(g.Lease("g").Wanted()), "none waits")
		g.Unlock()
	})
}

// behind are calls that wait behind another call of their process. Each blocks
// until it has the lock or its context ends, and f runs under the lock where it
// is given.
var behind = map[string]func(q *quorate.Quorum) func(ctx context.Context, f func()) error{
	"mutex": func(q *quorate.Quorum) func(context.Context, func()) error {
		m := mutex.New(q, "m")
		return func(ctx context.Context, f func()) error {
			return m.Do(ctx, func(context.Context) error { f(); return nil })
		}
	},
	"group": func(q *quorate.Quorum) func(context.Context, func()) error {
		g := mutex.All(q, []string{"a", "b"})
		return func(ctx context.Context, f func()) error {
			return g.Do(ctx, func(context.Context) error { f(); return nil })
		}
	},
	"rwmutex": func(q *quorate.Quorum) func(context.Context, func()) error {
		m := rwmutex.New(q, "rw")
		return func(ctx context.Context, f func()) error {
			return m.Do(ctx, func(context.Context) error { f(); return nil })
		}
	},
	"flight": func(q *quorate.Quorum) func(context.Context, func()) error {
		g := flight.New[int](q, "f")
		return func(ctx context.Context, f func()) error {
			_, err := g.Do(ctx, "k", time.Minute, func(context.Context) (int, error) { f(); return 1, nil })
			return err
		}
	},
	"once": func(q *quorate.Quorum) func(context.Context, func()) error {
		o := once.New(q, "o")
		return func(ctx context.Context, f func()) error {
			return o.DoContext(ctx, func(context.Context) error { f(); return nil })
		}
	},
	"leader": func(q *quorate.Quorum) func(context.Context, func()) error {
		e := leader.New(q, "l")
		return func(ctx context.Context, _ func()) error { return e.Campaign(ctx, "") }
	},
}

// Of two calls of one process that wait while no node can be reached, each says
// that nodes are missing, also the one behind the other.
func TestWaitBehindACallThatWaitsForNodes(t *testing.T) {
	for what, open := range behind {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := quoratetest.New(t, 3)
				q := c.Quorum()
				call := open(q)
				c.Partition(q, 0, 1, 2)
				long, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				first := make(chan error, 1)
				go func() { first <- call(long, func() {}) }()
				time.Sleep(time.Second)
				short, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				for _, err := range []error{call(short, func() {}), <-first} {
					require.ErrorIs(t, err, quorate.ErrNoQuorum)
					assert.NotErrorIs(t, err, quorate.ErrHeld)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					var e *quorate.Error
					if assert.ErrorAs(t, err, &e) {
						assert.Len(t, e.Nodes, 3)
					}
				}
			})
		})
	}
}

// A call that waits for the lock of another goroutine of its process says that
// the turn is missing, while no node can be reached, too.
func TestWaitBehindAHolderOfTheProcess(t *testing.T) {
	for what, open := range behind {
		if what == "leader" { // it does not wait: the process leads
			continue
		}
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := quoratetest.New(t, 3)
				q := c.Quorum()
				call := open(q)
				held, done, first := make(chan struct{}), make(chan struct{}), make(chan error, 1)
				go func() { first <- call(t.Context(), func() { close(held); <-done }) }()
				<-held
				c.Partition(q, 0, 1, 2)
				time.Sleep(time.Second)
				short, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				assert.ErrorIs(t, call(short, func() {}), quorate.ErrHeld)
				c.Partition(q)
				close(done)
				<-first
			})
		})
	}
}
