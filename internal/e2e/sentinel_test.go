package e2e_test

import (
	"context"
	"crypto/tls"
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
	failover := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: s.Addrs()})
	defer failover.Close()
	given, err := quorate.New([]redis.UniversalClient{failover}, timing, quorate.WithNodeNames("sentinel:mymaster@"+strings.Join(slices.Sorted(slices.Values(s.Addrs())), ",")))
	require.NoError(t, err)
	defer given.Close()
	require.NoError(t, given.Bootstrap(t.Context()))
	l := startLoad(t, []*quorate.Quorum{given, e2e.OpenAt(t, []string{s.URL()}, timing), e2e.OpenAt(t, []string{s.URL()}, timing)})
	l.busy(t)
	require.NoError(t, c.Node(0).Kill())
	killed := l.now() + int64(100*time.Millisecond) // an answer may be on its way
	require.True(t, e2e.EventuallyWithin(mostFailover, func() bool {
		at, err := s.Master(t.Context())
		return err == nil && at == c.Node(1).Addr()
	}))
	switched := l.now()
	first := l.after(t, killed)
	t.Logf("failover after %v, locked again after %v", time.Duration(switched-killed), time.Duration(first-killed))
	assert.Greater(t, time.Duration(first-killed), guard, "the new master does not vote before its guard time ends")
	assert.Less(t, time.Duration(first-switched), 2*guard+e2e.Patience/2)
	require.NoError(t, c.Node(0).Restart(), "it is a master until the Sentinels make it a replica")
	l.after(t, l.now()+int64(100*time.Millisecond))
	l.judge(t)
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = quorate.Connect(ctx, []string{c.URLs()[1]})
	assert.ErrorContains(t, err, "is a replica, and a node must be a master")
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

// Sentinels that refuse connections are named at once, with the cause.
func TestSentinelsThatRefuse(t *testing.T) {
	t.Parallel()
	ports := []string{freePort(t), freePort(t), freePort(t)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := quorate.Connect(ctx, []string{"redis://127.0.0.1:" + ports[0] + "?master_name=m&addr=127.0.0.1:" + ports[1] + "&addr=127.0.0.1:" + ports[2]}, quorate.WithLogger(nil))
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	for _, p := range ports {
		assert.ErrorContains(t, err, "dial tcp 127.0.0.1:"+p+": connect: connection refused")
	}
}

// failsOver kills the master, and returns when the Sentinels name another one.
func failsOver(t *testing.T, s *redistest.Sentinels, master *redistest.Server) {
	t.Helper()
	at, err := s.Master(t.Context())
	require.NoError(t, err)
	require.NoError(t, master.Kill())
	require.True(t, e2e.EventuallyWithin(mostFailover, func() bool {
		now, err := s.Master(t.Context())
		return err == nil && now != at
	}))
}

// Sentinels and servers with passwords of their own, all reached over TLS: a
// lock goes on after a failover, and no line of the log proposes what is for
// brand-new nodes only.
func TestSentinelsWithTLSAndPasswords(t *testing.T) {
	t.Parallel()
	skipWithoutTLS(t)
	g := &guarded{}
	key := g.certify(t)
	secure := []string{"tls-cert-file " + g.pem, "tls-key-file " + key, "tls-ca-cert-file " + g.pem, "tls-auth-clients no", "tls-replication yes"}
	guard := redistest.Guard{
		Password: "watch", Ports: []string{freePort(t), freePort(t)}, TLS: &tls.Config{RootCAs: g.pool},
		Lines: append(slices.Clone(secure), "requirepass watch", "sentinel sentinel-pass watch", "sentinel auth-pass NAME secret"),
	}
	var args []string
	for _, line := range append(secure, "masterauth secret") {
		name, value, _ := strings.Cut(line, " ")
		args = append(args, "--"+name, value)
	}
	c := redistest.Start(t, 2, redistest.WithPassword("secret"), redistest.WithArgs(args...))
	for i, port := range guard.Ports {
		require.NoError(t, c.Node(i).Client().ConfigSet(t.Context(), "tls-port", port).Err())
	}
	s := redistest.StartGuarded(t, c, "mymaster", guard)
	o, err := redis.ParseFailoverURL(s.URL() + "&password=secret")
	require.NoError(t, err)
	o.TLSConfig.RootCAs = g.pool
	client := redis.NewFailoverClient(o)
	defer client.Close()
	log := &e2e.Log{}
	q, err := quorate.New([]redis.UniversalClient{client}, e2e.Guarded(time.Second, 3*time.Second), log.Option(), quorate.WithNodeNames("sentinel:mymaster@"+s.Addrs()[0]))
	require.NoError(t, err)
	defer q.Close()
	require.NoError(t, q.Bootstrap(t.Context()))
	m := mutex.New(q, "m")
	m.Lock()
	m.Unlock()
	before := len(log.Lines(""))
	failsOver(t, s, c.Node(0))
	m.Lock()
	m.Unlock()
	after := strings.Join(log.Lines("")[before:], "\n")
	assert.NotEmpty(t, after)
	assert.NotContains(t, after, "ootstrap")

	o.SentinelPassword = "wrong"
	wrong := redis.NewFailoverClient(o)
	defer wrong.Close()
	refused, err := quorate.New([]redis.UniversalClient{wrong}, quorate.WithLogger(nil), quorate.WithNodeNames("sentinel:mymaster@"+s.Addrs()[0]))
	require.NoError(t, err)
	defer refused.Close()
	assert.ErrorContains(t, mutex.New(refused, "m").LockContext(deadline(t)), "WRONGPASS")
}

// Sentinels that are too few for a failover: the set, as one of three nodes,
// counts as down until its master is back, and locks go on.
func TestSentinelsWithoutAQuorum(t *testing.T) {
	t.Parallel()
	c, s := set(t)
	others := redistest.Start(t, 2)
	q := e2e.OpenAt(t, append(others.URLs(), s.URL()), e2e.Guarded(time.Second, 3*time.Second))
	require.NoError(t, q.Bootstrap(t.Context()))
	require.NoError(t, s.Kill(0))
	require.NoError(t, s.Kill(1))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
	require.NoError(t, c.Node(0).Kill())
	require.True(t, e2e.Eventually(func() bool {
		r, err := q.Check(t.Context())
		return err == nil && r.Nodes[2].Err != nil
	}))
	for range 20 {
		require.NoError(t, m.LockContext(deadline(t)))
		m.Unlock()
	}
	r, err := q.Check(t.Context())
	require.NoError(t, err)
	assert.Error(t, r.Nodes[2].Err, "nothing takes the master's place")
	require.NoError(t, c.Node(0).Restart())
	require.True(t, e2e.EventuallyWithin(mostFailover, func() bool {
		r, err := q.Check(t.Context())
		return err == nil && r.Ready == 3
	}))
}

// Three Sentinel sets are three nodes: one master after the other is killed,
// each time that the set before has come back, and locks never stop.
func TestThreeSentinelSets(t *testing.T) {
	t.Parallel()
	var urls []string
	var servers []*redistest.Cluster
	var sets []*redistest.Sentinels
	for range 3 {
		c, s := set(t)
		servers, sets, urls = append(servers, c), append(sets, s), append(urls, s.URL())
	}
	timing := e2e.Guarded(time.Second, 3*time.Second)
	q := e2e.OpenAt(t, urls, timing)
	require.NoError(t, q.Bootstrap(t.Context()))
	l := startLoad(t, []*quorate.Quorum{q, e2e.OpenAt(t, urls, timing)})
	l.busy(t)
	for i, s := range sets {
		killed := l.now()
		failsOver(t, s, servers[i].Node(0))
		l.after(t, killed)
		require.True(t, e2e.EventuallyWithin(mostFailover, func() bool {
			r, err := q.Check(t.Context())
			return err == nil && r.Ready == 3
		}), "set %d counts again", i)
	}
	l.judge(t)
}
