package leader_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
)

// line campaigns with all participants but the first, which leads: one after
// the other, so that they are in line in this order.
func line(t *testing.T, m *mutex.Mutex, all ...*leader.Election) (led []<-chan error) {
	t.Helper()
	led = []<-chan error{nil}
	for i, e := range all[1:] {
		led = append(led, campaign(soon(t), e, "at "+e.ID()))
		waiters(t, m, i+1)
	}
	return led
}

// The leader hands over to the third in line. The second one steps back, and
// never leads meanwhile: an observer sees the first leader, none, and the third.
func TestTransferTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nodes(t)
		es, m := fleet(t, n, e2e.Timing(quiet), "a", "b", "c", "d", "observer")
		a, b, c, d := es[0], es[1], es[2], es[3]
		require.NoError(t, a.Campaign(soon(t), "at a"))
		led := line(t, m, a, b, c, d)
		first := a.Lease().Token()
		ctx, cancel := context.WithCancel(t.Context())
		seen := make(chan string, 100)
		go func() {
			defer close(seen)
			for l, err := range es[4].Observe(ctx) {
				if errors.Is(err, leader.ErrNoLeader) {
					err = nil
				}
				seen <- fmt.Sprint(l.ID, err)
			}
		}()
		require.Equal(t, "a<nil>", e2e.Receive(t, seen))

		require.ErrorIs(t, a.TransferTo(soon(t), "x"), leader.ErrNoCandidate)
		require.ErrorIs(t, a.TransferTo(soon(t), "a"), leader.ErrNoCandidate, "it leads already")
		require.ErrorIs(t, a.TransferTo(soon(t), ""), leader.ErrNoCandidate)
		require.ErrorIs(t, b.TransferTo(soon(t), "c"), quorate.ErrNotHeld)
		require.NoError(t, a.Lease().Context().Err())

		require.NoError(t, a.TransferTo(soon(t), "c"))
		require.Nil(t, a.Lease())
		require.NoError(t, e2e.Receive(t, led[2]))
		waiters(t, m, 2) // b is in line again
		require.Empty(t, led[1])
		require.Greater(t, c.Lease().Token(), first)
		next := e2e.Receive(t, seen)
		if next == "<nil>" { // it may have missed that there was none for a moment
			next = e2e.Receive(t, seen)
		}
		require.Equal(t, "c<nil>", next)
		cancel()
		require.Empty(t, e2e.Receive(t, seen))
		require.ErrorIs(t, a.TransferTo(soon(t), "b"), quorate.ErrNotHeld)

		// The transfer is over: the next in line leads.
		require.NoError(t, c.Resign(soon(t)))
		require.NoError(t, e2e.Receive(t, led[3]))
		require.NoError(t, d.Resign(soon(t)))
		require.NoError(t, e2e.Receive(t, led[1]))
		require.NoError(t, b.Resign(soon(t)))
	})
}

// While Run is running, the work returns before the other one leads. Until
// then, another candidate may be chosen.
func TestTransferToWhileRunning(t *testing.T) {
	for name, end := range map[string]func(cancel func(), tm term){
		"returns":    func(_ func(), tm term) { close(tm.leave) },
		"at SIGTERM": func(cancel func(), tm term) { cancel(); close(tm.leave) },
		"panics":     func(_ func(), tm term) { close(tm.panics) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				es, m := fleet(t, nodes(t), e2e.Timing(quiet), "a", "b", "c", "d")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := newStage()
				done := run(ctx, es[0], s.callbacks())
				work := e2e.Receive(t, s.started)
				led := line(t, m, es...)
				require.ErrorIs(t, es[0].TransferTo(soon(t), "x"), leader.ErrNoCandidate)
				require.NoError(t, work.ctx.Err())
				require.NoError(t, es[0].TransferTo(soon(t), "d"))
				require.Equal(t, quorate.ErrReleased, context.Cause(work.ctx))
				require.NoError(t, es[0].TransferTo(soon(t), "c"))
				synctest.Wait()
				require.NoError(t, work.lease.Context().Err(), "it leads until its work has returned")
				require.Equal(t, es[0].Lease(), work.lease)
				require.Empty(t, led[2])
				end(cancel, work)
				require.NoError(t, e2e.Receive(t, led[2]))
				require.NoError(t, e2e.Receive(t, s.stopped))
				require.ErrorIs(t, es[0].TransferTo(soon(t), "b"), quorate.ErrNotHeld)
				require.Empty(t, led[1])
				require.Empty(t, led[3])
				cancel()
				require.Error(t, e2e.Receive(t, done))
				require.NoError(t, es[2].Resign(soon(t)))
				require.NoError(t, e2e.Receive(t, led[3]))
				require.NoError(t, es[3].Resign(soon(t)))
				require.NoError(t, e2e.Receive(t, led[1]))
				require.NoError(t, es[1].Resign(soon(t)))
			})
		})
	}
}

// The chosen one dies before it can lead. Its lease ends, and then the next one
// behind it leads without stepping back.
func TestTransferToOneThatDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Second
		n := nodes(t)
		es, m := fleet(t, n, e2e.Timing(ttl), "a", "b")
		dying := n.Quorum(e2e.Timing(ttl))
		dies, d := leader.New(dying, "e", leader.WithID("dies")),
			leader.New(n.Quorum(e2e.Timing(ttl)), "e", leader.WithID("d"))
		require.NoError(t, es[0].Campaign(soon(t), ""))
		led := line(t, m, es[0], es[1], dies, d)
		n.Partition(dying, 0, 1, 2)
		ended := time.Now()
		require.NoError(t, es[0].TransferTo(soon(t), "dies"))
		require.NoError(t, e2e.Receive(t, led[3]))
		require.LessOrEqual(t, time.Since(ended), ttl+ttl/20)
		require.Empty(t, led[1])
		n.Partition(dying)
		require.NoError(t, d.Resign(soon(t)))
		require.NoError(t, e2e.Receive(t, led[1]), "it has stepped back once")
		require.NoError(t, es[1].Resign(soon(t)))
		require.NoError(t, e2e.Receive(t, led[2]))
		require.NoError(t, dies.Resign(soon(t)))
	})
}

// The chosen one gives up its place while the leader drains its work. All others
// step back once, or not at all, and none waits for a lease.
func TestTransferToOneThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es, m := fleet(t, nodes(t), e2e.Timing(quiet), "a", "b", "c")
		ctx, cancel := context.WithCancel(t.Context())
		s := newStage()
		done := run(ctx, es[0], s.callbacks())
		work := e2e.Receive(t, s.started)
		led := line(t, m, es[0], es[1])
		fickle, leave := context.WithCancel(t.Context())
		last := campaign(fickle, es[2], "")
		waiters(t, m, 2)
		require.NoError(t, es[0].TransferTo(soon(t), "c"))
		leave()
		require.ErrorIs(t, e2e.Receive(t, last), context.Canceled)
		waiters(t, m, 1)
		cancel()
		ended := time.Now()
		close(work.leave)
		require.NoError(t, e2e.Receive(t, led[1]))
		require.Less(t, time.Since(ended), time.Second)
		require.ErrorIs(t, e2e.Receive(t, done), context.Canceled)
		require.NoError(t, es[1].Resign(soon(t)))
	})
}

// A process was killed and has come back with its ID. Its new claim is chosen:
// the old one can't lead.
func TestTransferToOneThatCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Second
		n := nodes(t)
		es, m := fleet(t, n, e2e.Timing(ttl), "a", "b", "d", "c")
		dying := n.Quorum(e2e.Timing(ttl))
		killed := leader.New(dying, "e", leader.WithID("c"))
		require.NoError(t, es[0].Campaign(soon(t), ""))
		led := line(t, m, es[0], es[1], killed, es[2], es[3])
		n.Partition(dying, 0, 1, 2)
		ended := time.Now()
		require.NoError(t, es[0].TransferTo(soon(t), "c"))
		require.NoError(t, e2e.Receive(t, led[4]))
		require.LessOrEqual(t, time.Since(ended), ttl+ttl/20)
		require.Empty(t, led[1])
		require.Empty(t, led[3])
		require.NoError(t, es[3].Resign(soon(t)))
		require.Error(t, dying.Close(), "no node has heard it")
		require.Error(t, e2e.Receive(t, led[2]))
		var all sync.WaitGroup // b and d, in either order
		for e, led := range map[*leader.Election]<-chan error{es[1]: led[1], es[2]: led[3]} {
			all.Go(func() {
				assert.NoError(t, e2e.Receive(t, led))
				assert.NoError(t, e.Resign(soon(t)))
			})
		}
		all.Wait()
	})
}

// A node that hangs keeps neither the leader waiting nor its successor.
func TestTransferToWithANodeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nodes(t)
		es, m := fleet(t, n, e2e.Timing(quiet), "a", "b", "c")
		require.NoError(t, es[0].Campaign(soon(t), ""))
		led := line(t, m, es...)
		n.Delay(1, time.Hour)
		began := time.Now()
		require.ErrorIs(t, es[0].TransferTo(soon(t), "x"), leader.ErrNoCandidate)
		require.NoError(t, es[0].TransferTo(soon(t), "c"))
		require.NoError(t, e2e.Receive(t, led[2]))
		require.Less(t, time.Since(began), time.Millisecond)
		n.Delay(1, 0)
		require.NoError(t, es[2].Resign(soon(t)))
		require.NoError(t, e2e.Receive(t, led[1]))
		require.NoError(t, es[1].Resign(soon(t)))
	})
}

// Proclaim, Campaign and a second TransferTo at the moment of a transfer change
// neither who leads next nor what is recorded in the end.
func TestTransferToAtTheSameTimeAsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nodes(t)
		es, m := fleet(t, n, e2e.Timing(quiet), "a", "b", "c")
		a, b, c := es[0], es[1], es[2]
		for range 20 {
			require.NoError(t, a.Campaign(soon(t), ""))
			led := line(t, m, a, b, c)
			var transfers, writes sync.WaitGroup
			var over atomic.Bool // both have failed: it goes on leading
			begin := make(chan struct{})
			handed := make(chan error, 2)
			for range 2 {
				transfers.Go(func() { <-begin; handed <- a.TransferTo(soon(t), "c") })
				writes.Go(func() {
					<-begin
					for !over.Load() && a.Proclaim(soon(t), "late") == nil {
						time.Sleep(time.Microsecond) // fake time passes only while all wait
					}
				})
			}
			close(begin)
			transfers.Wait()
			over.Store(true)
			writes.Wait()
			if err := <-handed; err != nil {
				require.ErrorIs(t, err, quorate.ErrNotHeld)
				require.NoError(t, <-handed)
			} else {
				require.Error(t, <-handed)
			}
			require.NoError(t, e2e.Receive(t, led[2]))
			require.NoError(t, c.Resign(soon(t)))
			require.NoError(t, e2e.Receive(t, led[1]))
			require.NoError(t, b.Resign(soon(t)))
			synctest.Wait() // a minority of the nodes may still be erasing
			r, err := inspect.Name(soon(t), n.Quorum(), "e")
			require.NoError(t, err)
			require.Nil(t, r.Record)
		}
	})
}

// A record that no majority can read keeps no candidate from leading.
func TestTransferAndARecordThatCannotBeRead(t *testing.T) {
	c := cluster(t)
	timing := e2e.Timing(2 * time.Second)
	a, b := leader.New(e2e.Open(t, c, timing), "e", leader.WithID("a")),
		leader.New(e2e.Open(t, c, timing), "e", leader.WithID("b"))
	require.NoError(t, a.Campaign(soon(t), ""))
	led := line(t, mutex.New(e2e.Open(t, c, timing), "e"), a, b)
	id, at := strings.Repeat("f", 32), fmt.Sprint(time.Now().Add(72*time.Hour).UnixMicro())
	for i := range 2 {
		record := strings.Join([]string{"0", at, id, at, id, "1 0 0 1"}, " ")
		require.NoError(t, c.Node(i).Client().Set(t.Context(), "quorate:{e}:r", record, 0).Err())
	}
	_, err := b.Leader(short(t))
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	require.NoError(t, a.Lease().(*core.Lease).Release()) // Resign would replace the record
	require.NoError(t, e2e.Receive(t, led[1]))
	require.NoError(t, b.Resign(soon(t)))
}

// short is a context for what can't succeed.
func short(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}
