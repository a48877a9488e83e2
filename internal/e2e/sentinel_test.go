package e2e_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/judge"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/members"
	"github.com/quorate/quorate/mutex"
)

// mostFailover is how long a Sentinel set may take for one: see
// e2e.EventuallyWithin.
const mostFailover = 90 * time.Second

// load are workers that lock one name again and again, and write down when they
// held it.
type load struct {
	began time.Time
	stop  context.CancelFunc
	all   sync.WaitGroup

	mu    sync.Mutex
	holds []judge.Hold[int]
}

func (l *load) now() int64 { return time.Since(l.began).Nanoseconds() }

func startLoad(t *testing.T, qs []*quorate.Quorum) *load {
	ctx, stop := context.WithCancel(t.Context())
	l := &load{began: time.Now(), stop: stop}
	for i, q := range qs {
		l.all.Go(func() {
			m := mutex.New(q, "load")
			for ctx.Err() == nil {
				if m.LockContext(ctx) != nil {
					continue
				}
				lease, from := m.Lease(), l.now()
				select { // until it is given back, or lost
				case <-lease.Context().Done():
				case <-time.After(2 * time.Millisecond):
				}
				to := l.now()
				if lease.Context().Err() != nil {
					to = min(to, lease.ValidUntil().Sub(l.began).Nanoseconds())
				}
				l.mu.Lock()
				l.holds = append(l.holds, judge.Hold[int]{Of: i, From: from, To: to, Weight: 1, Token: lease.Token()})
				l.mu.Unlock()
				m.Unlock()
			}
		})
	}
	t.Cleanup(l.all.Wait)
	t.Cleanup(stop)
	return l
}

// busy waits until the name has been held often.
func (l *load) busy(t *testing.T) {
	t.Helper()
	require.True(t, e2e.EventuallyWithin(mostFailover, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.holds) > 100
	}))
}

// after waits for a hold that began after the given time, and returns when the
// first one did.
func (l *load) after(t *testing.T, at int64) (first int64) {
	t.Helper()
	require.True(t, e2e.EventuallyWithin(mostFailover, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, h := range l.holds {
			if h.From > at && (first == 0 || h.From < first) {
				first = h.From
			}
		}
		return first > 0
	}))
	return first
}

// judge ends the load, and finds nothing.
func (l *load) judge(t *testing.T) {
	t.Helper()
	l.stop()
	l.all.Wait()
	assert.Empty(t, judge.Overlaps(l.holds, 1))
	assert.Empty(t, judge.Falls(l.holds, 1))
	t.Log(len(l.holds), " holds")
}

// set is a Sentinel set of a master and a replica.
func set(t *testing.T) (*redistest.Cluster, *redistest.Sentinels) {
	c := redistest.Start(t, 2)
	return c, redistest.StartSentinels(t, c, "mymaster")
}

// One node that is a Sentinel set: its master is killed. The replica that takes
// its place has its marker, and may lack what was written last, so it does not
// vote before its guard time.
func TestSentinelAlone(t *testing.T) {
	t.Parallel()
	const ttl, guard = time.Second, 3 * time.Second
	c, s := set(t)
	timing := e2e.Guarded(ttl, guard)
	failover := quorate.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster",
		SentinelAddrs: s.Addrs()})
	defer failover.Close()
	given, err := quorate.New([]redis.UniversalClient{failover}, timing,
		quorate.WithNodeNames("sentinel:mymaster@"+strings.Join(slices.Sorted(slices.Values(s.Addrs())), ",")))
	require.NoError(t, err)
	defer given.Close()
	require.NoError(t, given.Bootstrap(t.Context()))
	l := startLoad(t, []*quorate.Quorum{given, e2e.OpenAt(t, []string{s.URL()}, timing),
		e2e.OpenAt(t, []string{s.URL()}, timing)})
	l.busy(t)
	require.NoError(t, c.Node(0).Kill())
	killed := l.now() + int64(100*time.Millisecond) // an answer may be on its way
	require.True(t, e2e.EventuallyWithin(mostFailover, func() bool {
		at, err := s.Master(t.Context())
		return err == nil && at == c.Node(1).Addr()
	}))
	switched := l.now()
	first := l.after(t, killed)
	t.Logf("failover after %v, locked again after %v",
		time.Duration(switched-killed), time.Duration(first-killed))
	assert.Greater(t, time.Duration(first-killed), guard,
		"the new master does not vote before its guard time ends")
	assert.Less(t, time.Duration(first-switched), 2*guard+e2e.Patience/2)
	require.NoError(t, c.Node(0).Restart(), "it is a master until the Sentinels make it a replica")
	l.after(t, l.now()+int64(100*time.Millisecond))
	l.judge(t)
}

// A node by itself becomes a Sentinel set. Once the set records that, a failover
// stops neither a client with the Sentinels' URL nor one with the old list.
func TestNodeBecomesASentinelSet(t *testing.T) {
	t.Parallel()
	c, s := set(t)
	timing := e2e.Guarded(time.Second, 3*time.Second)
	old := e2e.OpenAt(t, c.URLs()[:1], timing)
	require.NoError(t, old.Bootstrap(deadline(t)))
	q := e2e.OpenAt(t, []string{s.URL()}, timing)
	require.NoError(t, members.Move(deadline(t), q, c.Addrs()[0], s.URL()))
	require.NoError(t, c.Node(0).Kill())
	for _, one := range []*quorate.Quorum{old, q} {
		m := mutex.New(one, "m")
		require.NoError(t, m.LockContext(deadline(t)))
		m.Unlock()
	}
}

// A Sentinel set as one of three nodes: a failover there stops no lock, and the
// set counts again after its guard time.
func TestSentinelOfThree(t *testing.T) {
	t.Parallel()
	const ttl, guard = time.Second, 3 * time.Second
	c, s := set(t)
	others := redistest.Start(t, 2)
	urls := append(others.URLs(), s.URL())
	timing := e2e.Guarded(ttl, guard)
	q := e2e.OpenAt(t, urls, timing)
	require.NoError(t, q.Bootstrap(t.Context()))
	l := startLoad(t, []*quorate.Quorum{q, e2e.OpenAt(t, urls, timing)})
	l.after(t, 0)
	killed := l.now()
	require.NoError(t, c.Node(0).Kill())
	first := l.after(t, killed)
	t.Logf("locked again after %v", time.Duration(first-killed))
	warned := func(r quorate.Report) bool {
		return strings.Contains(strings.Join(r.Nodes[2].Warnings, "\n"), "min-replicas-to-write")
	}
	require.True(t, e2e.EventuallyWithin(mostFailover, func() bool {
		r, err := q.Check(t.Context())
		return err == nil && r.Ready == 3 && l.now()-killed > guard.Nanoseconds() && !warned(r)
	}), "the set counts again")
	require.NoError(t, c.Node(0).Restart())
	require.True(t, e2e.EventuallyWithin(mostFailover, func() bool {
		r, err := q.Check(t.Context())
		return err == nil && warned(r)
	}), "it has a replica again, and goes on without it")
	for i := range 2 { // a busy machine may have seen another failover: either may be the master
		require.NoError(t, c.Node(i).Client().ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	}
	require.True(t, e2e.EventuallyWithin(mostFailover, func() bool {
		r, err := q.Check(t.Context())
		return err == nil && r.Nodes[2].Err == nil && !warned(r)
	}), "it stops when it is cut off from its replica")
	l.judge(t)
}

// Two Sentinel sets that name one master are one server.
func TestSentinelTwice(t *testing.T) {
	t.Parallel()
	c, s := set(t)
	other := redistest.Start(t, 1)
	_, err := quorate.Connect(t.Context(), []string{s.URL(), other.URLs()[0], s.URL() + "&client_name=x"})
	require.ErrorIs(t, err, quorate.ErrInvalid)
	assert.ErrorContains(t, err, "nodes 1 and 3 are the same server")
	q := e2e.OpenAt(t, []string{s.URL(), other.URLs()[0], c.URLs()[0]})
	require.True(t, e2e.EventuallyWithin(mostFailover, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		return found(q.Bootstrap(ctx)) // what records them finds out
	}))
	replica := func(url string) bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		q, err := quorate.Connect(ctx, []string{url})
		if err == nil {
			assert.NoError(t, q.Close())
			return false
		}
		return strings.Contains(err.Error(), "is a replica, but a node must be a master")
	}
	// A busy machine may have seen a failover, and may answer too late.
	require.True(t, e2e.EventuallyWithin(mostFailover,
		func() bool { return replica(c.URLs()[1]) || replica(c.URLs()[0]) }))
}

func found(err error) bool {
	return err != nil && strings.Contains(err.Error(), "is the same server as")
}

// A URL that names a wrong master, or none, is refused at once, and the error
// says which it is.
func TestSentinelWithoutItsMaster(t *testing.T) {
	t.Parallel()
	_, s := set(t)
	for url, says := range map[string]string{
		strings.Replace(s.URL(), "mymaster", "other", 1): "the Sentinels know no master of that name",
		"redis://" + s.Addrs()[0]:                        "is a Sentinel, and the URL names no master",
	} {
		_, err := quorate.Connect(deadline(t), []string{url}, quorate.WithLogger(nil))
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, says)
	}
}
