package rwmutex_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/rwmutex"
)

type lost chan error

func (l lost) Observe(e quorate.Event) {
	if e.Kind == quorate.EventLost {
		l <- e.Err
	}
}

// However a hold ends by itself, its context, each call and the observer name
// one cause.
func TestEndsNameOneCause(t *testing.T) {
	ends := map[string]struct {
		want   error
		closed bool
		end    func(t *testing.T, c *quoratetest.Cluster, q, eye *quorate.Quorum, token uint64)
	}{
		"evicted": {quorate.ErrEvicted, false,
			func(t *testing.T, _ *quoratetest.Cluster, _, eye *quorate.Quorum, token uint64) {
				require.NoError(t, inspect.Evict(t.Context(), eye, "m", token))
			}},
		"lost": {quorate.ErrLost, false,
			func(_ *testing.T, c *quoratetest.Cluster, q, _ *quorate.Quorum, _ uint64) {
				c.Partition(q, 0, 1, 2)
				time.Sleep(time.Minute)
			}},
		"lost before Close": {quorate.ErrLost,
			true, func(_ *testing.T, c *quoratetest.Cluster, q, _ *quorate.Quorum, _ uint64) {
				c.Partition(q, 0, 1, 2)
				time.Sleep(time.Minute)
				_ = q.Close() // no node has confirmed the release
			}},
		"held for too long": {quorate.ErrLost,
			false, func(*testing.T, *quoratetest.Cluster, *quorate.Quorum, *quorate.Quorum, uint64) {
				time.Sleep(2 * time.Minute)
			}},
		"closed": {quorate.ErrClosed, true,
			func(t *testing.T, _ *quoratetest.Cluster, q, _ *quorate.Quorum, _ uint64) {
				require.NoError(t, q.Close())
			}},
	}
	for name, as := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, told := quoratetest.New(t, 3), make(lost, 1)
				q, eye := c.Quorum(quorate.WithObserver(told), quorate.WithMaxHold(100*time.Second)), c.Quorum()
				m := rwmutex.New(q, "m")
				m.Lock()
				l := m.Lease()
				next := make(chan error)
				go func() { next <- m.RLockContext(t.Context()) }()
				synctest.Wait()
				as.end(t, c, q, eye, l.Token())
				named := func(who string, err error) {
					t.Helper()
					for _, cause := range []error{quorate.ErrEvicted, quorate.ErrLost, quorate.ErrClosed} {
						assert.Equal(t, errors.Is(as.want, cause), errors.Is(err, cause), "%s says: %v", who, err)
					}
				}
				synctest.Wait()
				named("Extend", m.Extend(t.Context()))
				named("Downgrade", m.Downgrade(t.Context()))
				named("the context", context.Cause(l.Context()))
				if as.want != quorate.ErrClosed {
					named("the observer", <-told)
				}
				c.Partition(q)
				named("Unlock", m.UnlockContext(t.Context()))
				if err := <-next; as.closed {
					require.ErrorIs(t, err, quorate.ErrClosed)
				} else {
					require.NoError(t, err)
					m.RUnlock()
				}
				assert.Empty(t, told)
			})
		})
	}
}
