package e2e_test

import (
	"context"
	"crypto/tls"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// Sentinels that refuse connections are named at once, with the cause.
func TestSentinelsThatRefuse(t *testing.T) {
	t.Parallel()
	ports := []string{freePort(t), freePort(t), freePort(t)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := quorate.Connect(ctx,
		[]string{"redis://127.0.0.1:" + ports[0] + "?master_name=m&addr=127.0.0.1:" + ports[1] +
			"&addr=127.0.0.1:" + ports[2]}, quorate.WithLogger(nil))
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
	secure := []string{"tls-cert-file " + g.pem, "tls-key-file " + key, "tls-ca-cert-file " + g.pem,
		"tls-auth-clients no", "tls-replication yes"}
	guard := redistest.Guard{
		Password: "watch", Ports: []string{freePort(t), freePort(t)}, TLS: &tls.Config{RootCAs: g.pool},
		Lines: append(slices.Clone(secure), "requirepass watch", "sentinel sentinel-pass watch",
			"sentinel auth-pass NAME secret"),
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
	client := quorate.NewFailoverClient(o)
	defer client.Close()
	log := &e2e.Log{}
	q, err := quorate.New([]redis.UniversalClient{client}, e2e.Guarded(time.Second, 3*time.Second), log.Option(),
		quorate.WithNodeNames("sentinel:mymaster@"+s.Addrs()[0]))
	require.NoError(t, err)
	defer q.Close()
	require.NoError(t, q.Bootstrap(t.Context()))
	m := mutex.New(q, "m")
	require.NoError(t, m.Do(t.Context(), func(context.Context) error { return nil }))
	before := len(log.Lines(""))
	failsOver(t, s, c.Node(0))
	require.NoError(t, m.Do(t.Context(), func(context.Context) error { return nil }))
	after := strings.Join(log.Lines("")[before:], "\n")
	assert.NotEmpty(t, after)
	assert.NotContains(t, after, "ootstrap")

	o.SentinelPassword = "wrong"
	wrong := quorate.NewFailoverClient(o)
	defer wrong.Close()
	refused, err := quorate.New([]redis.UniversalClient{wrong}, quorate.WithLogger(nil),
		quorate.WithNodeNames("sentinel:mymaster@"+s.Addrs()[0]))
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
