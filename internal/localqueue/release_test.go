package localqueue

import (
	"context"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

func queues(t *testing.T, n int) (qs []*Queue) {
	t.Helper()
	return queuesOver(t, n, nil)
}

// queuesOver is queues over connections that call written after each write.
func queuesOver(t *testing.T, n int, written func()) (qs []*Queue) {
	t.Helper()
	c := redistest.Start(t, 1)
	options := &redis.Options{Addr: c.Node(0).Addr()}
	if written != nil {
		options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return writes{conn, written}, err
		}
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	set := setup.Defaults()
	set.TTL, set.Guard = time.Minute, 3*time.Minute
	q, err := core.New([]redis.UniversalClient{client}, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(t.Context()) })
	require.NoError(t, q.Bootstrap(t.Context()))
	for range n {
		qs = append(qs, New(q, &set, core.Spec{Name: "n", Weight: 2, Capacity: 2},
			core.Spec{Name: "n", Weight: 1, Capacity: 2}))
	}
	return qs
}

// writes is a connection that calls written after each write.
type writes struct {
	net.Conn
	written func()
}

func (w writes) Write(p []byte) (int, error) {
	defer w.written()
	return w.Conn.Write(p)
}

// An answer from just before the deadline renews the claim while it is being
// unlocked. It looked lost; it must not live on without an owner.
func TestUnlockOfAClaimThatIsRenewedMeanwhile(t *testing.T) {
	t.Parallel()
	qs := queues(t, 2)
	require.NoError(t, qs[0].Lock(t.Context(), Write, false))
	deadline := reflect.ValueOf(qs[0].state.Held(Write)).FieldByName("a").Elem().FieldByName("packed").Addr().UnsafePointer()
	(*atomic.Int64)(deadline).Store(2) // as it was before the renewal, long past
	_, err := qs[0].Unlock(Write)
	assert.ErrorIs(t, err, fault.ErrLost)
	require.Eventually(t, func() bool { return qs[1].Lock(t.Context(), Write, true) == nil },
		20*time.Second, time.Millisecond)
	_, err = qs[1].Unlock(Write)
	assert.NoError(t, err)
}

// Two goroutines that both take themselves for the writer: one of the two has
// made a mistake and hears so, and the value stays usable.
func TestUnlockRacesDowngrade(t *testing.T) {
	t.Parallel()
	qs := queues(t, 2)
	q, other := qs[0], qs[1]
	for range 200 {
		require.NoError(t, q.Lock(t.Context(), Write, false))
		var all sync.WaitGroup
		var unlocked, downgraded error
		all.Go(func() { _, unlocked = q.Unlock(Write) })
		all.Go(func() { downgraded = q.Downgrade() })
		all.Wait()
		if downgraded == nil {
			require.ErrorIs(t, unlocked, fault.ErrNotHeld)
			_, err := q.Unlock(Read)
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, downgraded, fault.ErrNotHeld)
			require.NoError(t, unlocked)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		require.NoError(t, q.Lock(ctx, Write, false))
		cancel()
		require.ErrorIs(t, other.Lock(t.Context(), Read, true), fault.ErrHeld, "beside a writer")
		_, err := q.Unlock(Write)
		require.NoError(t, err)
	}
}

// An answer from just before the deadline renews the claim while its writer
// becomes a reader. It looked lost, and has a reader's weight at the nodes: no
// writer may hold the value under it.
func TestDowngradeOfAClaimThatIsRenewedMeanwhile(t *testing.T) {
	t.Parallel()
	var standing atomic.Pointer[atomic.Int64]
	qs := queuesOver(t, 2, func() {
		if s := standing.Load(); s != nil {
			s.Store(2) // as it was before the renewal, long past
		}
	})
	q, other := qs[0], qs[1]
	require.NoError(t, q.Lock(t.Context(), Write, false))
	held := q.state.Held(Write)
	standing.Store((*atomic.Int64)(reflect.ValueOf(held).FieldByName("a").Elem().FieldByName("packed").Addr().UnsafePointer()))
	err := q.Downgrade()
	standing.Store(nil)
	require.NoError(t, held.Renew(t.Context()))
	require.NoError(t, err)
	require.NoError(t, other.Lock(t.Context(), Read, false))
	for _, q := range qs {
		_, err = q.Unlock(Read)
		require.NoError(t, err)
	}
}

// looksLost makes a claim that is held look as if its deadline were long past. An
// answer from just before that renews it: see Hold.Renew.
func looksLost(h core.Hold) {
	deadline := reflect.ValueOf(h).FieldByName("a").Elem().FieldByName("packed").Addr().UnsafePointer()
	(*atomic.Int64)(deadline).Store(4)
}

// The end of an earlier claim comes late, as the one that lingers is about to
// be renewed by an answer from just before its deadline. It looks lost, too; it
// must not live on without an owner.
func TestEndWhileAnotherClaimLingers(t *testing.T) {
	t.Parallel()
	qs := queues(t, 2)
	qs[0].state.Linger = time.Minute
	require.NoError(t, qs[0].Lock(t.Context(), Write, false))
	held := qs[0].state.Held(Write)
	_, err := qs[0].Unlock(Write)
	require.NoError(t, err)
	looksLost(held)
	qs[0].Ended()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	assert.NoError(t, qs[1].Lock(ctx, Write, false))
}

// So it does while readers have another claim. They go on, and so do those that
// come in alongside them.
func TestEndWhileAnotherClaimIsHeld(t *testing.T) {
	t.Parallel()
	q := queues(t, 1)[0]
	require.NoError(t, q.Lock(t.Context(), Read, false))
	held := q.state.Held(Read)
	looksLost(held)
	q.Ended()
	require.NoError(t, held.Renew(t.Context()))
	require.NoError(t, q.Lock(t.Context(), Read, false))
	assert.NoError(t, q.Lease(Read).Context().Err())
	for range 2 {
		_, err := q.Unlock(Read)
		assert.NoError(t, err)
	}
}
