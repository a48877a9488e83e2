package shards_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/shards"
)

const ttl = 8 * time.Second // the default

// work is what all shards of a test do. It judges them.
type work struct {
	t *testing.T

	mu     sync.Mutex
	runs   map[int]string // which replica runs a shard
	tokens map[int]uint64
	ended  map[int]time.Time
	idle   time.Duration // the longest between two runs of a shard
	which  string        // of which shard that was
	last   map[int]string
	moves  int
}

func newWork(t *testing.T) *work {
	return &work{t: t, last: map[int]string{}, runs: map[int]string{},
		tokens: map[int]uint64{}, ended: map[int]time.Time{}}
}

func (w *work) begin(replica string, shard int, token uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Empty(w.t, w.runs[shard], "shard %d runs at two replicas", shard)
	assert.Greater(w.t, token, w.tokens[shard])
	if at, is := w.ended[shard]; is && time.Since(at) > w.idle {
		w.idle = time.Since(at)
		w.which = fmt.Sprintf("shard %d from %s to %s at %v", shard, w.last[shard], replica,
			time.Now().Format(time.TimeOnly+".000"))
	}
	w.last[shard] = replica
	w.runs[shard], w.tokens[shard] = replica, token
	w.moves++
}

func (w *work) end(shard int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, shard)
	w.ended[shard] = time.Now()
}

// shares returns how many shards each replica runs, and resets what is counted.
func (w *work) shares() (shares map[string]int, moves int, idle time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	shares = map[string]int{}
	for _, replica := range w.runs {
		shares[replica]++
	}
	moves, idle = w.moves, w.idle
	w.moves, w.idle = 0, 0
	return shares, moves, idle
}

// replica is one that runs.
type replica struct {
	q    *quorate.Quorum
	stop func() error
}

func (w *work) start(c *quoratetest.Cluster, name string, n int, opts ...quorate.Option) *replica {
	q := c.Quorum(opts...)
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- shards.New(q, "mailboxes", n).Run(ctx,
			func(ctx context.Context, shard int, l quorate.Lease) error {
				w.begin(name, shard, l.Token())
				<-ctx.Done()
				w.end(shard)
				return nil
			})
	}()
	r := &replica{q, sync.OnceValue(func() error { cancel(); return <-ended })}
	w.t.Cleanup(func() { _ = r.stop() })
	return r
}

// Replicas that are far from the nodes have their fair share, too. In fake time
// they would stand still if one waited for another one's question with a lock.
func TestFarFromTheNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := quoratetest.New(t, 3), newWork(t)
		for i := range 3 {
			c.Delay(i, 20*time.Millisecond)
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			w.start(c, name, 12)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		shares, _, idle := w.shares()
		assert.Equal(t, map[string]int{"a": 3, "b": 3, "c": 3, "d": 3}, shares)
		assert.Less(t, idle, 500*time.Millisecond)
	})
}

// Replicas join, one stops, and one dies. No shard runs twice at a time, each
// has its fair share, and no shard is idle for longer than a lease and a round
// trip.
func TestFairShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 16
		c, w := quoratetest.New(t, 3), newWork(t)
		a := w.start(c, "a", n)
		time.Sleep(2 * time.Second)
		shares, _, _ := w.shares()
		assert.Equal(t, map[string]int{"a": n}, shares)

		b := w.start(c, "b", n)
		w.start(c, "c", n)
		time.Sleep(10 * time.Second)
		shares, moves, idle := w.shares()
		assert.Len(t, shares, 3)
		for name, share := range shares {
			assert.Contains(t, []int{5, 6}, share, name)
		}
		assert.Less(t, moves, 2*n)
		assert.Less(t, idle, 100*time.Millisecond, "it runs until the new owner waits: %s", w.which)

		require.ErrorIs(t, a.stop(), context.Canceled)
		time.Sleep(5 * time.Second)
		shares, _, idle = w.shares()
		assert.Less(t, idle, 100*time.Millisecond, "it is handed over at once: %s", w.which)
		assert.Equal(t, map[string]int{"b": n / 2, "c": n / 2}, shares)

		c.Partition(b.q, 0, 1, 2)
		time.Sleep(ttl + 100*time.Millisecond)
		shares, moves, _ = w.shares()
		assert.Equal(t, map[string]int{"c": n}, shares, "after the lease and a round trip")
		assert.Equal(t, n/2, moves)

		c.Partition(b.q)
		time.Sleep(10 * time.Second)
		shares, _, idle = w.shares()
		assert.Equal(t, map[string]int{"b": n / 2, "c": n / 2}, shares)
		assert.Less(t, idle, 100*time.Millisecond, "it runs until the new owner waits: %s", w.which)
	})
}

// There are more replicas than shards: those that stand by take over.
func TestStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := quoratetest.New(t, 3), newWork(t)
		first := w.start(c, "a", 2)
		time.Sleep(time.Second)
		w.start(c, "b", 2)
		time.Sleep(5 * time.Second)
		w.start(c, "c", 2)
		time.Sleep(5 * time.Second)
		shares, _, _ := w.shares()
		assert.Equal(t, map[string]int{"a": 1, "b": 1}, shares)
		require.ErrorIs(t, first.stop(), context.Canceled)
		time.Sleep(5 * time.Second)
		shares, _, _ = w.shares()
		assert.Equal(t, map[string]int{"b": 1, "c": 1}, shares)
	})
}

// Without a majority all shards end with their leases. They go on when the
// nodes are back.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := quoratetest.New(t, 3), newWork(t)
		w.start(c, "a", 4)
		w.start(c, "b", 4)
		time.Sleep(5 * time.Second)
		c.Stop(0)
		time.Sleep(time.Minute)
		shares, _, _ := w.shares()
		assert.Equal(t, map[string]int{"a": 2, "b": 2}, shares, "one node is not missed")
		c.Stop(1)
		time.Sleep(ttl)
		shares, _, _ = w.shares()
		assert.Empty(t, shares)
		c.Start(0)
		c.Start(1)
		time.Sleep(3 * time.Minute)
		shares, _, _ = w.shares()
		assert.Equal(t, map[string]int{"a": 2, "b": 2}, shares)
	})
}

// A shard that fails is tried again, and the others run on.
func TestFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var mu sync.Mutex
		counts := map[int]int{}
		err := shards.New(c.Quorum(), "mailboxes", 2).Run(ctx,
			func(ctx context.Context, shard int, _ quorate.Lease) error {
				mu.Lock()
				counts[shard]++
				mu.Unlock()
				if shard == 0 {
					return errors.New("broken")
				}
				<-ctx.Done()
				return nil
			})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.InDelta(t, 10, counts[0], 2)
		assert.Equal(t, 1, counts[1])
		synctest.Wait()
		assert.Empty(t, c.Holders("mailboxes:1"))
		assert.Empty(t, c.Holders("mailboxes:members"))
	})
}

func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		nothing := func(ctx context.Context, _ int, _ quorate.Lease) error { <-ctx.Done(); return nil }
		assert.Panics(t, func() { shards.New(q, "x", 0) })
		assert.Panics(t, func() { shards.New(q, "x", 1, nil) })
		assert.Panics(t, func() { _ = new(shards.Shards).Run(t.Context(), nothing) })
		assert.Panics(t, func() { _ = shards.New(q, "x", 1).Run(t.Context(), nil) })
		for _, name := range []string{"", "{x}"} {
			require.ErrorIs(t, shards.New(q, name, 3).Run(t.Context(), nothing), quorate.ErrInvalid, name)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, shards.New(q, "x", 3).Run(ctx, nothing), context.Canceled)
		for _, of := range []error{quorate.ErrClosed, quorate.ErrInvalid} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(5*time.Second, func() { cancel(fmt.Errorf("another Quorum: %w", of)) })
			require.ErrorIs(t, shards.New(q, "x", 3).Run(ctx, nothing), context.Canceled)
		}

		for n, other := range map[int]int{4: 5, 200: 201} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			name, ended := fmt.Sprint("of ", n), make(chan error, 1)
			go func() { ended <- shards.New(c.Quorum(), name, n).Run(ctx, nothing) }()
			time.Sleep(5 * time.Second)
			err := shards.New(c.Quorum(), name, other).Run(ctx, nothing)
			require.ErrorIs(t, err, quorate.ErrInvalid, fmt.Sprint("another number: ", err))
			cancel()
			<-ended
		}

		closing := c.Quorum()
		ended := make(chan error, 1)
		go func() { ended <- shards.New(closing, "others", 3).Run(t.Context(), nothing) }()
		time.Sleep(5 * time.Second)
		require.NoError(t, closing.Close())
		require.ErrorIs(t, <-ended, quorate.ErrClosed)
	})
}
