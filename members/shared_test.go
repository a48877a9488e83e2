package members_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/members"
	"github.com/quorate/quorate/mutex"
)

// withTTL is the shortest guard time for a ttl.
func withTTL(ttl time.Duration) []quorate.Option {
	return []quorate.Option{quorate.WithTTL(ttl), quorate.WithNodeTimeout(ttl / 4),
		quorate.WithSkew(10 * time.Millisecond), quorate.WithGuard(2*ttl + 20*time.Millisecond)}
}

// New refuses settings of the set by which two could hold, and so does Set.
func TestSetRefusesWhatNewRefuses(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q := operator(t, c.URLs(), e2e.Timing(500*time.Millisecond))
	before := get(t, q).Settings
	for _, s := range []members.Settings{
		{Retention: time.Millisecond}, {Guard: 10 * time.Minute, Retention: 9 * time.Minute},
		{Guard: 4 * time.Second / 3},
		{Guard: 721 * time.Hour}, {Skew: 25 * time.Hour}, {Retention: 87601 * time.Hour},
	} {
		assert.ErrorIs(t, members.Set(bounded(t), q, s), quorate.ErrInvalid, "%+v", s)
	}
	assert.Equal(t, before, get(t, q).Settings)
}

// A guard time that is longer than the retention covers longer leases. A node
// keeps one of these although a client with a short ttl asks for the name.
func TestOneHoldsWhateverGuardTimeIsSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	op := operator(t, c.URLs(), append(withTTL(800*time.Millisecond), quorate.WithRetention(2*time.Second))...)
	require.NoError(t, members.Set(bounded(t), op, members.Settings{Guard: 7 * time.Second}))
	require.Equal(t, 7*time.Second, get(t, op).Settings.Retention, "it follows the guard time")
	proxies, via := e2e.Proxies(t, c.URLs(), proxy.Fault{})
	first := mutex.New(e2e.OpenAt(t, via, append(withTTL(3*time.Second), e2e.Through())...), "m")
	require.NoError(t, first.LockContext(bounded(t)))
	for _, p := range proxies {
		p.Impose(proxy.Both, proxy.Any, proxy.Fault{Hold: true})
	}
	require.NoError(t, mutex.New(op, "m").LockContext(bounded(t)))
	assert.Error(t, first.Lease().Context().Err(), "two hold")
	for _, p := range proxies {
		p.Impose(proxy.Both, proxy.Any, proxy.Fault{})
	}
}

// A set whose nodes have all lost their data is recorded again by a client that
// knew it. The nodes vote when the guard time of the set that they forgot is
// over, whatever guard time that client has: leases that fit the set's may run.
func TestGuardTimeOfAForgottenSet(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 3} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			c := redistest.Start(t, size)
			long := append(withTTL(4*time.Second), quorate.WithGuard(9*time.Second))
			operator(t, c.URLs(), long...)
			holder := mutex.New(e2e.OpenAt(t, c.URLs(), long...), "m")
			require.NoError(t, holder.LockContext(bounded(t)))
			other := mutex.New(e2e.OpenAt(t, c.URLs(), withTTL(800*time.Millisecond)...), "m")
			got := make(chan error, 1)
			go func() { got <- other.LockContext(bounded(t)) }()
			require.True(t, e2e.Eventually(func() bool {
				h, err := holder.Holder(bounded(t))
				return err == nil && h.Waiters == 1
			}))
			require.NoError(t, holder.Extend(bounded(t)))
			for i := range size {
				require.NoError(t, c.Node(i).Client().FlushAll(t.Context()).Err())
			}
			require.NoError(t, e2e.Receive(t, got))
			assert.Error(t, holder.Lease().Context().Err(), "two hold")
		})
	}
}
