package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

var runs = flag.Int("runs", 100, "how many holders TestHolderCutOff cuts off")

// A holder that is cut off from every server learns it before another client
// can have the lock: at the moment another one has it, the first one's context
// has ended.
func TestHolderCutOff(t *testing.T) {
	t.Parallel()
	const ttl, batch = 500 * time.Millisecond, 25
	c := redistest.Start(t, 3)
	ps, urls := e2e.Proxies(t, c.URLs(), proxy.Fault{})
	timing := e2e.Timing(ttl)
	here := e2e.Open(t, c, timing)
	away := e2e.OpenAt(t, urls, timing)

	overlaps := 0
	var least time.Duration = time.Hour
	for done := 0; done < *runs; done += batch {
		var all sync.WaitGroup
		var mu sync.Mutex
		first, second := make([]*mutex.Mutex, batch), make([]*mutex.Mutex, batch)
		leases := make([]quorate.Lease, batch)
		in := make([]atomic.Bool, batch)
		for i := range batch {
			name := fmt.Sprintf("m%d", done+i)
			first[i], second[i] = mutex.New(away, name), mutex.New(here, name)
			ctx, cancel := context.WithTimeout(t.Context(), e2e.Patience)
			require.NoError(t, first[i].LockContext(ctx))
			cancel()
			leases[i] = first[i].Lease()
			leases[i].Context() // a later call of Context reads the lease, and not the timer
			all.Go(func() {
				second[i].Lock()
				in[i].Store(true)
				reported := leases[i].Context().Err() != nil
				before := time.Since(leases[i].ValidUntil())
				mu.Lock()
				defer mu.Unlock()
				if least = min(least, before); !reported || before < 0 {
					overlaps++
					t.Errorf("%s is held twice: told %v, valid until %v before", name, reported, before)
				}
			})
		}
		for i := range batch {
			// On a busy machine the first may lose its lock before this one
			// waits.
			require.True(t, e2e.Eventually(func() bool {
				h, err := second[i].Holder(t.Context())
				return in[i].Load() || err == nil && h.Waiters == 1
			}))
		}
		for _, p := range ps {
			p.Hold()
		}
		all.Wait()
		for i := range batch {
			assert.ErrorIs(t, context.Cause(leases[i].Context()), quorate.ErrLost)
		}
		for _, p := range ps {
			p.Release() // what the first had asked for arrives now
		}
		for i := range batch {
			assert.ErrorIs(t, first[i].UnlockContext(t.Context()), quorate.ErrLost, "lost is final")
			lease := second[i].Lease()
			if err := second[i].UnlockContext(t.Context()); errors.Is(err, quorate.ErrLost) {
				continue // a busy machine did not renew it in time
			}
			assert.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrReleased, "nothing late has touched it")
		}
	}
	t.Logf("%d holders cut off, %d overlaps; the deadline passed at least %v before the next had the lock",
		*runs, overlaps, least)
	e2e.Clean(t, c)
}

// The same for a hold that ends by itself while all servers can be reached: the
// holder gives it back then, and no other client may learn that before the
// holder does.
func TestHoldThatEndsByItself(t *testing.T) {
	t.Parallel()
	const ttl, batch = 300 * time.Millisecond, 25
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(ttl))
	var least time.Duration = time.Hour
	for done := 0; done < *runs; done += batch {
		var all sync.WaitGroup
		var mu sync.Mutex
		for i := range batch {
			name := fmt.Sprintf("m%d", done+i)
			first, second := mutex.New(q, name, quorate.WithoutRenewal()), mutex.New(q, name)
			require.NoError(t, first.LockContext(deadline(t)))
			lease := first.Lease()
			lease.Context()
			all.Go(func() {
				second.Lock()
				reported := lease.Context().Err() != nil
				before := time.Since(lease.ValidUntil())
				assert.True(t, reported,
					"%s is held twice: the first holder's context has not ended, valid until %v before", name, before)
				assert.ErrorIs(t, first.UnlockContext(t.Context()), quorate.ErrLost)
				second.Unlock()
				mu.Lock()
				defer mu.Unlock()
				least = min(least, before)
			})
		}
		all.Wait()
	}
	t.Logf("%d holds ended; the deadline passed at least %v before the next had the lock", *runs, least)
	e2e.Clean(t, c)
}
