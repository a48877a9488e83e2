package leader_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/leader"
)

func TestRunPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es, m := fleet(t, nodes(t), e2e.Timing(quiet), "a", "b")
		a, b := es[0], es[1]
		boom := errors.New("boom")
		for name, cb := range map[string]leader.Callbacks{
			"OnStartedLeading": {OnStartedLeading: func(context.Context, quorate.Lease) {
				waiters(t, m, 1)
				panic(boom)
			}},
			"OnStoppedLeading": {
				OnStartedLeading: func(context.Context, quorate.Lease) { waiters(t, m, 1) },
				OnStoppedLeading: func(error) { panic(boom) },
			},
			"OnNewLeader": {
				OnStartedLeading: func(ctx context.Context, _ quorate.Lease) { <-ctx.Done() },
				OnNewLeader: func(l leader.Leader) {
					if l.ID == "a" {
						waiters(t, m, 1)
						panic(boom)
					}
				},
			},
		} {
			var starts, stops atomic.Int32
			start, stop := cb.OnStartedLeading, cb.OnStoppedLeading
			led := make(chan struct{})
			cb.OnStartedLeading = func(ctx context.Context, l quorate.Lease) {
				starts.Add(1)
				close(led)
				start(ctx, l)
			}
			cb.OnStoppedLeading = func(err error) {
				stops.Add(1)
				assert.NoError(t, err, "it has resigned")
				if stop != nil {
					stop(err)
				}
			}
			ran := run(soon(t), a, cb)
			e2e.Receive(t, led)
			require.NoError(t, b.Campaign(soon(t), ""), "%s: the panic has resigned first", name)
			require.Equal(t, panicked{boom}, e2e.Receive(t, ran))
			require.Equal(t, int32(1), starts.Load())
			require.Equal(t, int32(1), stops.Load())
			require.Nil(t, a.Lease())
			require.NoError(t, b.Resign(soon(t)))
		}
		require.NoError(t, a.Campaign(soon(t), ""), "it can be used again")
		require.NoError(t, a.Resign(soon(t)))
	})
}

// Four participants lead in turn, and each term ends in one way or another:
// every start has its stop, in this order, and no two overlap.
func TestStartsAndStops(t *testing.T) {
	t.Parallel()
	const ttl, rounds = 200 * time.Millisecond, 12
	c := cluster(t)
	var newest atomic.Pointer[term]
	var starts, stops, losses atomic.Int32
	var all sync.WaitGroup
	for i := range 4 {
		q := e2e.Open(t, c, e2e.Timing(ttl))
		kinds := []*leader.Election{
			leader.New(q, "e", quorate.WithMaxHold(ttl/4)),
			leader.New(q, "e", quorate.WithMaxHold(ttl/4), leader.WithOneTerm()),
		}
		all.Go(func() {
			open := 0 // terms that have started and not stopped
			for range rounds {
				ctx, cancel := context.WithCancel(soon(t))
				how := rand.IntN(5)
				err := e2e.Receive(t, run(ctx, kinds[(how+i)%2], leader.Callbacks{
					OnStartedLeading: func(ctx context.Context, lease quorate.Lease) {
						// The last leader's context has ended, or ends late and
						// the clock says that the leadership is over.
						if before := newest.Swap(&term{ctx: ctx, lease: lease}); before != nil && before.ctx.Err() == nil {
							assert.False(t, time.Now().Before(before.lease.ValidUntil()), "two lead")
						}
						starts.Add(1)
						open++
						assert.Equal(t, 1, open)
						switch how {
						case 0: // returns
						case 1: // loses, by WithMaxHold
							<-ctx.Done()
							losses.Add(1)
							return
						case 2:
							cancel()
						case 3:
							panic("a callback panics")
						case 4:
							cancel()
							<-ctx.Done()
						}
						if rand.IntN(2) == 0 {
							cancel()
						}
					},
					OnStoppedLeading: func(err error) {
						stops.Add(1)
						open--
						assert.Equal(t, 0, open)
						if how == 1 {
							assert.ErrorIs(t, err, quorate.ErrLost)
							cancel()
						}
					},
				}))
				cancel()
				assert.Equal(t, 0, open)
				if _, ok := errors.AsType[panicked](err); ok != (how == 3) {
					assert.Fail(t, "panicked", "%d: %v", how, err)
				}
			}
		})
	}
	all.Wait()
	assert.Equal(t, starts.Load(), stops.Load())
	assert.GreaterOrEqual(t, starts.Load(), int32(4*rounds))
	t.Logf("%d terms, %d of them lost", starts.Load(), losses.Load())
}
