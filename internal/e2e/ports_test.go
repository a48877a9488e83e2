package e2e_test

import (
	"context"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/members"
	"github.com/quorate/quorate/mutex"
)

// twoPorts are servers that listen on a plain port and on one with TLS.
type twoPorts struct {
	*guarded
	opts []quorate.Option
}

func startTwoPorts(t *testing.T) *twoPorts {
	p := &twoPorts{guarded: startTLS(t)}
	trust := e2e.Setting(func(s *setup.Settings) {
		s.Prepare = func(o *redis.Options) error {
			if o.TLSConfig != nil {
				o.TLSConfig.RootCAs = p.pool
			}
			return nil
		}
	})
	p.opts = []quorate.Option{e2e.Timing(4 * time.Second), quorate.WithPrefix(p.name),
		quorate.WithLogger(nil), trust}
	return p
}

func (p *twoPorts) open(t *testing.T, list []string) *quorate.Quorum {
	t.Helper()
	q, err := quorate.Connect(deadline(t), list, p.opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// addr is the address in a URL.
func addr(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err)
	return u.Host
}

// lockers are clients that lock one name all the time. Each checks that it is
// alone, that its token is higher than all before, and that its hold was not
// lost.
type lockers struct {
	t      *testing.T
	inside atomic.Int32
	token  atomic.Uint64
	holds  atomic.Int64
	wg     sync.WaitGroup
}

// one locks with the Quorums that it gets, one after the other, until there is
// none left.
func (l *lockers) one(ctx context.Context, name string, first *quorate.Quorum, next <-chan *quorate.Quorum) {
	l.wg.Go(func() {
		for q := first; ; {
			m := mutex.New(q, name)
			if !assert.NoError(l.t, m.LockContext(ctx)) {
				return
			}
			assert.Equal(l.t, int32(1), l.inside.Add(1), "a second holder")
			token := m.Lease().Token()
			assert.Greater(l.t, token, l.token.Swap(token), "a token falls")
			l.holds.Add(1)
			assert.NoError(l.t, context.Cause(m.Lease().Context()), "a hold is lost")
			l.inside.Add(-1)
			m.Unlock()
			select {
			case to, more := <-next:
				assert.NoError(l.t, q.Close())
				if !more {
					return
				}
				q = to
			default:
			}
		}
	})
}

// more waits for so many more holds.
func (l *lockers) more(n int64) {
	l.t.Helper()
	to := l.holds.Load() + n
	require.True(l.t, e2e.Eventually(func() bool { return l.holds.Load() >= to || l.t.Failed() }))
}

// Clients go over from plain ports to TLS one at a time, and back, as
// docs/operate/membership.md says, while twenty of them lock all the time and
// one holds. Nothing is lost, and no two hold.
func TestFromPlainPortsToTLSAndBack(t *testing.T) {
	t.Parallel()
	for name, lists := range map[string]func(p *twoPorts) (from, to []string, closes string){
		"to TLS": func(p *twoPorts) (from, to []string, closes string) {
			return p.urls("secret"), p.rediss("secret"), "port"
		},
		"from TLS": func(p *twoPorts) (from, to []string, closes string) {
			return p.rediss("secret"), p.urls("secret"), "tls-port"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startTwoPorts(t)
			from, to, closes := lists(p)
			changesPorts(t, p, from, to, closes)
		})
	}
}

func changesPorts(t *testing.T, p *twoPorts, from, to []string, closes string) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*e2e.Patience)
	defer cancel()
	operator := p.open(t, from)
	require.NoError(t, operator.Bootstrap(ctx))

	// A client that goes over too early is told what to do.
	early, cancelEarly := context.WithTimeout(ctx, 3*time.Second)
	defer cancelEarly()
	_, err := quorate.Connect(early, to, p.opts...)
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.ErrorContains(t,
		err, "the set records this node at "+addr(t, from[0])+", which is not in this client's list")
	assert.ErrorContains(t, err, "quorate members move --keep "+addr(t, from[0])+" URL")
	assert.NotContains(t, err.Error(), "redis://")
	assert.NotContains(t, err.Error(), "rediss://")
	assert.NotContains(t, err.Error(), "secret")

	l := &lockers{t: t}
	moves := make([]chan *quorate.Quorum, 20)
	for i := range moves {
		moves[i] = make(chan *quorate.Quorum)
		l.one(ctx, p.job("load"), p.open(t, from), moves[i])
	}
	held := mutex.New(operator, p.job("held"))
	require.NoError(t, held.LockContext(ctx))
	l.more(20)
	for i := range from {
		require.NoError(t, members.AddAddr(ctx, operator, addr(t, from[i]), to[i]))
	}
	set, err := members.Get(ctx, operator)
	require.NoError(t, err)
	for i, m := range set.Members {
		assert.Equal(t, addr(t, from[i]), m.Addr)
		assert.Equal(t, []string{addr(t, to[i])}, m.Also)
	}
	for _, move := range moves {
		move <- p.open(t, to)
		l.more(1)
	}
	require.NoError(t, context.Cause(held.Lease().Context()))
	held.Unlock()

	operator = p.open(t, to)
	held = mutex.New(operator, p.job("held"))
	require.NoError(t, held.LockContext(ctx))
	for i := range from {
		require.NoError(t, members.Move(ctx, operator, addr(t, from[i]), to[i]))
	}
	for _, s := range p.servers {
		require.NoError(t, s.Client().ConfigSet(ctx, closes, "0").Err())
	}
	l.more(40)
	for _, move := range moves {
		close(move)
	}
	l.wg.Wait()
	require.NoError(t, context.Cause(held.Lease().Context()))
	held.Unlock()
	set, err = members.Get(ctx, operator)
	require.NoError(t, err)
	for i, m := range set.Members {
		assert.Equal(t, addr(t, to[i]), m.Addr)
		assert.Empty(t, m.Also)
	}
	t.Log(l.holds.Load(), "holds")
}
