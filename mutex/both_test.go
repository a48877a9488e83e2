package mutex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

// A Mutex on either set keeps Both out, and is kept out by it.
func TestBothExcludesEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		older, newer := quoratetest.New(t, 1), quoratetest.New(t, 3)
		b := mutex.Both(older.Quorum(), newer.Quorum(), "m")
		for _, c := range []*quoratetest.Cluster{older, newer} {
			m := mutex.New(c.Quorum(), "m")
			require.NoError(t, m.LockContext(hour(t)))
			require.ErrorIs(t, b.TryLockContext(hour(t)), quorate.ErrHeld)
			assert.Nil(t, b.Leases())
			synctest.Wait()
			assert.Equal(t, 1, len(older.Holders("m"))+len(newer.Holders("m")), "a try leaves nothing")
			m.Unlock()

			require.NoError(t, b.LockContext(hour(t)))
			require.ErrorIs(t, m.TryLockContext(hour(t)), quorate.ErrHeld)
			b.Unlock()
		}
		require.NoError(t, b.LockContext(hour(t)))
		l := b.Leases()
		require.Len(t, l, 2)
		assert.Equal(t, older.Holders("m")[0].Token, l[0].Token())
		assert.Equal(t, newer.Holders("m")[0].Token, l[1].Token())
		assert.Equal(t, l[0], b.Lease("m"))
		require.NoError(t, b.UnlockContext(hour(t)))
		assert.Empty(t, older.Holders("m"))
		assert.Empty(t, newer.Holders("m"))
	})
}

// If the name is free, both sets are asked at the same time.
func TestBothTakesOneRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 40 * time.Millisecond
		older, newer := quoratetest.New(t, 1), quoratetest.New(t, 3)
		old, new := older.Quorum(), newer.Quorum()
		warm(t, old, new)
		for i := range 3 {
			newer.Delay(i, trip)
		}
		older.Delay(0, trip)
		began := time.Now()
		b := mutex.Both(old, new, "m")
		require.NoError(t, b.LockContext(hour(t)))
		assert.Equal(t, trip, time.Since(began))
		b.Unlock()
	})
}

// A caller that has old and waits for new is first on both when new is free.
// If it loses old meanwhile, it does not get the lock before it has old again.
func TestBothWaitsOnOldFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		older, newer := quoratetest.New(t, 1), quoratetest.New(t, 3)
		q := older.Quorum()
		b := mutex.Both(q, newer.Quorum(), "m")
		onOld, onNew := mutex.New(older.Quorum(), "m"), mutex.New(newer.Quorum(), "m")
		got := make(chan error, 1)
		lock := func() { go func() { got <- b.LockContext(hour(t)) }(); synctest.Wait() }

		require.NoError(t, onOld.LockContext(hour(t)))
		lock()
		assert.Empty(t, newer.Holders("m"), "it waits for old, and does not keep others from new")
		require.NoError(t, onNew.LockContext(hour(t)))
		onOld.Unlock()
		synctest.Wait()
		require.ErrorIs(t, onOld.TryLockContext(hour(t)), quorate.ErrHeld, "it waits for new, and has old")
		assert.Empty(t, got)

		older.Partition(q, 0)
		require.NoError(t, onOld.LockContext(hour(t)), "it has lost old")
		onNew.Unlock()
		time.Sleep(time.Minute)
		assert.Empty(t, got, "old is another's")
		older.Partition(q)
		time.Sleep(time.Minute)
		assert.Empty(t, got, "old is another's")
		onOld.Unlock()
		require.NoError(t, <-got)
		require.ErrorIs(t, onOld.TryLockContext(hour(t)), quorate.ErrHeld)
		require.ErrorIs(t, onNew.TryLockContext(hour(t)), quorate.ErrHeld)
		b.Unlock()
	})
}

// While new has too few nodes, a call that waits for it holds old. A call that
// has failed leaves nothing there.
func TestBothWithoutNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		older, newer := quoratetest.New(t, 1), quoratetest.New(t, 3)
		b, onOld := mutex.Both(older.Quorum(), newer.Quorum(), "m"), mutex.New(older.Quorum(), "m")
		free := func() {
			synctest.Wait()
			require.NoError(t, onOld.TryLockContext(hour(t)))
			onOld.Unlock()
			synctest.Wait()
			require.Empty(t, older.Holders("m"))
		}
		newer.Stop(0)
		newer.Stop(1)
		require.ErrorIs(t, b.TryLockContext(hour(t)), quorate.ErrNoQuorum)
		free()
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() { got <- b.LockContext(ctx) }()
		time.Sleep(time.Hour)
		require.ErrorIs(t, onOld.TryLockContext(hour(t)), quorate.ErrHeld)
		cancel()
		err := <-got
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		require.ErrorIs(t, err, context.Canceled)
		free()
	})
}

// If one of the two is lost, the context of Do has ended before a Mutex on that
// set holds. Afterwards the other one is given back.
func TestBothIsLost(t *testing.T) {
	for i, lost := range []string{"old", "new"} {
		t.Run(lost, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sets := []*quoratetest.Cluster{quoratetest.New(t, 3), quoratetest.New(t, 3)}
				qs := []*quorate.Quorum{sets[0].Quorum(), sets[1].Quorum()}
				one, other := mutex.New(sets[i].Quorum(), "m"), mutex.New(sets[1-i].Quorum(), "m")
				b := mutex.Both(qs[0], qs[1], "m")
				err := b.Do(hour(t), func(ctx context.Context) error {
					sets[i].Partition(qs[i], 0, 1)
					assert.NoError(t, one.LockContext(hour(t)))
					assert.ErrorIs(t, context.Cause(ctx), quorate.ErrLost)
					assert.Error(t, b.Leases()[i].Context().Err())
					assert.ErrorIs(t, other.TryLockContext(hour(t)), quorate.ErrHeld, "its work has not ended yet")
					return nil
				})
				require.ErrorIs(t, err, quorate.ErrLost)
				require.NoError(t, other.LockContext(hour(t)))
			})
		})
	}
}

// A fleet moves to another set and back while each process takes the name
// again and again. At any time the processes are at two steps at most that may
// stand next to each other. No two processes are inside, and all get in.
func TestBothMovesAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const fleet = 12
		a, b := quoratetest.New(t, 1), quoratetest.New(t, 3)
		var mu sync.Mutex
		var at [fleet]int // the step of each process
		inside, turns := 0, map[int]int{}
		var all sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		for i := range fleet {
			onA, onB := a.Quorum(quorate.WithLogger(nil)), b.Quorum(quorate.WithLogger(nil))
			steps := []func(ctx context.Context, f func(context.Context) error) error{
				mutex.New(onA, "m").Do, mutex.Both(onA, onB, "m").Do, mutex.New(onB, "m").Do,
				mutex.Both(onB, onA, "m").Do, mutex.New(onA, "m").Do,
			}
			dice := rand.New(rand.NewPCG(1, uint64(i)))
			all.Go(func() {
				for ctx.Err() == nil {
					mu.Lock()
					step := at[i]
					mu.Unlock()
					assert.NoError(t, steps[step](minute(t), func(ctx context.Context) error {
						mu.Lock()
						inside++
						turns[step]++
						assert.Equal(t, 1, inside, "step %d", step)
						mu.Unlock()
						time.Sleep(time.Duration(dice.Int64N(int64(10 * time.Millisecond))))
						mu.Lock()
						inside--
						mu.Unlock()
						return ctx.Err()
					}))
				}
			})
		}
		for step := range 5 {
			for i := range fleet {
				mu.Lock()
				at[i] = step
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(10 * time.Second) // each process has ended its turn of the step before
		}
		stop()
		all.Wait()
		for step := range 5 {
			assert.Greater(t, turns[step], fleet, fmt.Sprint("step ", step))
		}
	})
}

func TestBothMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 1)
		q, r := c.Quorum(), quoratetest.New(t, 1).Quorum()
		for _, same := range []*quorate.Quorum{q, c.Quorum()} {
			b := mutex.Both(q, same, "m")
			for _, lock := range []func(context.Context) error{b.LockContext, b.TryLockContext} {
				err := lock(hour(t))
				require.ErrorIs(t, err, quorate.ErrInvalid)
				require.ErrorContains(t, err, "of the same set")
				synctest.Wait() // the release of the first lock may be on its way
				require.Empty(t, c.Holders("m"))
			}
		}
		require.ErrorIs(t, mutex.Both(q, r, "{m}").TryLockContext(hour(t)), quorate.ErrInvalid)
		panicsWith(t, "quorate: mutex.Both: WithTTL(-1ns)", func() { mutex.Both(q, r, "m", quorate.WithTTL(-1)) })
		require.NoError(t, r.Close())
		require.ErrorIs(t, mutex.Both(q, r, "m").LockContext(hour(t)), quorate.ErrClosed)
	})
}

// Options are those of every name.
func TestAllWithOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		began := time.Now()
		for _, g := range []*mutex.Group{
			mutex.All(q, []string{"a", "b"}, quorate.WithTTL(2*time.Second), quorate.WithoutRenewal()),
			mutex.Both(q, quoratetest.New(t, 3).Quorum(),
				"a", quorate.WithTTL(2*time.Second), quorate.WithoutRenewal()),
		} {
			require.NoError(t, g.LockContext(hour(t)))
			for _, l := range g.Leases() {
				assert.Less(t, l.ValidUntil().Sub(began), 2*time.Second)
			}
			time.Sleep(2 * time.Second)
			for _, l := range g.Leases() {
				assert.ErrorIs(t, context.Cause(l.Context()), quorate.ErrLost)
			}
			g.Unlock()
			began = time.Now()
		}
		panicsWith(t, "quorate: mutex.All: WithTTL(-1ns)",
			func() { mutex.All(q, []string{"a"}, quorate.WithTTL(-1)) })
	})
}

func panicsWith(t *testing.T, text string, f func()) {
	t.Helper()
	defer func() { assert.Contains(t, fmt.Sprint(recover()), text) }()
	f()
}
