package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// cluster is a Redis Cluster of three masters with a replica each.
func cluster(t *testing.T) *redistest.Sharded { return redistest.StartSharded(t, 3, true) }

// prefixOf is the prefix of the keys of a name in a bucket.
func prefixOf(name string) string {
	return script.BucketPrefix(setup.Defaults().Prefix, script.BucketOf(name))
}

// slotOf is the slot of a name, and the server that has it.
func slotOf(t *testing.T, s *redistest.Sharded, name string) (int, *redistest.Server) {
	t.Helper()
	slot, err := s.Slot(t.Context(), script.SetKey(prefixOf(name)))
	require.NoError(t, err)
	at, err := s.Master(t.Context(), slot)
	require.NoError(t, err)
	return slot, at
}

// otherMaster is a master of another shard.
func otherMaster(s *redistest.Sharded, than *redistest.Server) *redistest.Server {
	for i := range 3 {
		if s.Node(i) != than {
			return s.Node(i)
		}
	}
	return nil
}

// Every primitive works on a cluster, by a client of New and by a URL of
// Connect, for names of all shards.
func TestCluster(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	ctx := deadline(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: s.Addrs()})
	defer client.Close()
	a, err := quorate.New([]redis.UniversalClient{client}, e2e.Timing(time.Second))
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	require.NoError(t, a.Bootstrap(ctx))
	b, err := quorate.Connect(ctx, []string{s.URL()}, e2e.Timing(time.Second))
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()

	shards := map[*redistest.Server]bool{}
	for i := range 12 {
		name := fmt.Sprint("name ", i)
		_, at := slotOf(t, s, name)
		shards[at] = true
		m, other := mutex.New(a, name), mutex.New(b, name)
		require.NoError(t, m.LockContext(ctx))
		assert.True(t, e2e.Eventually(func() bool { // a busy machine may be too slow for the first try
			return errors.Is(other.TryLockContext(ctx), quorate.ErrHeld)
		}))
		token := m.Lease().Token()
		waits := e2e.NewQueued(ctx)
		got := make(chan error, 1)
		go func() { got <- other.LockContext(waits) }()
		e2e.Receive(t, waits.In())
		m.Unlock()
		require.NoError(t, e2e.Receive(t, got))
		assert.Greater(t, other.Lease().Token(), token)
		other.Unlock()
	}
	assert.Len(t, shards, 3, "the names lie on all shards")

	rw, rw2 := rwmutex.New(a, "rw"), rwmutex.New(b, "rw")
	require.NoError(t, rw.RLockContext(ctx))
	require.NoError(t, rw2.RLockContext(ctx))
	assert.ErrorIs(t, rw.TryLockContext(ctx), quorate.ErrHeld)
	rw.RUnlock()
	rw2.RUnlock()
	sem, sem2 := semaphore.NewWeighted(a, "sem", 2), semaphore.NewWeighted(b, "sem", 2)
	require.NoError(t, sem.Acquire(ctx, 2))
	require.NoError(t, sem2.Resize(ctx, 3))
	require.NoError(t, sem2.Acquire(ctx, 1))
	sem.Release(2)
	sem2.Release(1)
	ran := 0
	for _, q := range []*quorate.Quorum{a, b} {
		require.NoError(t, once.New(q, "once").DoContext(ctx, func(context.Context) error { ran++; return nil }))
	}
	assert.Equal(t, 1, ran)
	e, e2 := leader.New(a, "leader", leader.WithID("a")), leader.New(b, "leader", leader.WithID("b"))
	require.NoError(t, e.Campaign(ctx, "a"))
	l, err := e2.Leader(ctx)
	require.NoError(t, err)
	assert.Equal(t, "a", l.ID)
	require.NoError(t, e.Resign(ctx))

	require.NoError(t, (&tenant{name: "t"}).inspect(ctx, b))

	r, err := b.Check(ctx)
	require.NoError(t, err)
	require.Len(t, r.Nodes, 1)
	assert.Equal(t, 1, r.Ready)
	assert.True(t, r.Nodes[0].CaughtUp)
	require.Len(t, r.Nodes[0].Shards, 3)
	buckets := 0
	for _, shard := range r.Nodes[0].Shards {
		buckets += len(shard.Buckets)
		assert.NoError(t, shard.Err)
		assert.Contains(t, s.Addrs()[:3], shard.Node)
	}
	assert.Equal(t, script.Buckets, buckets)
}

// clusterUnderLoad starts a cluster, which is the only node, and three clients
// that contend for a lock.
func clusterUnderLoad(t *testing.T, timing quorate.Option) (*redistest.Sharded, *load) {
	t.Helper()
	s := cluster(t)
	q := e2e.OpenAt(t, []string{s.URL()}, timing)
	require.NoError(t, q.Bootstrap(t.Context()))
	l := startLoad(t, []*quorate.Quorum{q, e2e.OpenAt(t, []string{s.URL()}, timing),
		e2e.OpenAt(t, []string{s.URL()}, timing)})
	l.busy(t)
	return s, l
}

// One node that is a cluster: the master of the name's shard is killed. Its
// replica has the bucket's marker, and may lack what was written last, so it
// does not vote before its guard time.
func TestClusterAlone(t *testing.T) {
	t.Parallel()
	const ttl, guard = time.Second, 3 * time.Second
	s, l := clusterUnderLoad(t, e2e.Guarded(ttl, guard))
	slot, master := slotOf(t, s, "load")
	require.NoError(t, master.Kill())
	killed := l.now() + int64(100*time.Millisecond) // an answer may be on its way
	require.True(t, e2e.Eventually(func() bool {
		at, err := s.Master(t.Context(), slot)
		return err == nil && at != master
	}))
	switched := l.now()
	first := l.after(t, killed)
	t.Logf("failover after %v, locked again after %v",
		time.Duration(switched-killed), time.Duration(first-killed))
	assert.Greater(t, time.Duration(first-killed), guard,
		"the new master does not vote before its guard time ends")
	assert.Less(t, time.Duration(first-switched), 2*guard+e2e.Patience/2)
	require.NoError(t, master.Restart(), "it is a master until it hears of the other one")
	l.after(t, l.now()+int64(100*time.Millisecond))
	l.judge(t)
}

// A cluster as one of three nodes, alongside two servers: a failover there and
// a slot that moves stop no lock, and the cluster counts again after its guard
// time.
func TestClusterOfThree(t *testing.T) {
	t.Parallel()
	const ttl, guard = time.Second, 3 * time.Second
	s := cluster(t)
	others := redistest.Start(t, 2)
	urls := append(others.URLs(), s.URL())
	timing := e2e.Guarded(ttl, guard)
	q := e2e.OpenAt(t, urls, timing)
	require.NoError(t, q.Bootstrap(t.Context()))
	l := startLoad(t, []*quorate.Quorum{q, e2e.OpenAt(t, urls, timing)})
	l.busy(t)
	whole := func(what string, since int64) {
		require.True(t, e2e.Eventually(func() bool {
			r, err := q.Check(t.Context())
			return err == nil && r.Ready == 3 && l.now()-since > guard.Nanoseconds()
		}), what)
	}
	slot, master := slotOf(t, s, "load")
	killed := l.now()
	require.NoError(t, master.Kill())
	t.Logf("locked again after %v", time.Duration(l.after(t, killed)-killed))
	require.True(t, e2e.Eventually(func() bool {
		at, err := s.Master(t.Context(), slot)
		return err == nil && at != master
	}))
	whole("it counts again after the failover", l.now())

	move, err := s.BeginMove(t.Context(), slot, otherMaster(s, master))
	require.NoError(t, err)
	begun := l.now()
	require.NoError(t, move.End(t.Context()))
	t.Logf("locked again after %v", time.Duration(l.after(t, begun)-begun))
	whole("it counts again after the move", begun)
	l.judge(t)
}

// A slot that moves is served by no server until all of it has moved, whichever
// keys move first. Neither server votes on a part of a queue meanwhile. The
// name waits, and goes on after a guard time.
func TestClusterMove(t *testing.T) {
	t.Parallel()
	const ttl, guard = time.Second, 3 * time.Second
	s, l := clusterUnderLoad(t, e2e.Guarded(ttl, guard))
	slot, from := slotOf(t, s, "load")
	move, err := s.BeginMove(t.Context(), slot, otherMaster(s, from))
	require.NoError(t, err)
	begun := l.now() + int64(100*time.Millisecond) // an answer may be on its way
	keys, err := move.Keys(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	// Half of the keys lie on each side, for longer than a lease.
	for _, k := range keys[:(len(keys)+1)/2] {
		require.NoError(t, move.Key(t.Context(), k))
	}
	<-time.After(ttl + ttl/2)
	l.mu.Lock()
	for _, h := range l.holds {
		assert.Less(t, h.From, begun, "a hold while the slot is being moved")
	}
	l.mu.Unlock()
	require.NoError(t, move.End(t.Context()))
	moved := l.now()
	first := l.after(t, begun)
	t.Logf("moved after %v, locked again %v later", time.Duration(moved-begun), time.Duration(first-moved))
	assert.Greater(t, time.Duration(first-begun), guard)
	assert.Less(t, time.Duration(first-moved), 2*guard+e2e.Patience/2)
	l.judge(t)
}

// manyNames returns a name of each bucket.
func manyNames() []string {
	names := make([]string, script.Buckets)
	for i, left := 0, script.Buckets; left > 0; i++ {
		if name := fmt.Sprint("name ", i); names[script.BucketOf(name)] == "" {
			names[script.BucketOf(name)] = name
			left--
		}
	}
	return names
}

// Three clusters are three nodes. All buckets are in use, with a connection to
// each cluster for each, and a master of one cluster is killed: locks go on in
// each bucket, holds of the killed master's buckets too, and the log has a line
// for each cause and not for each bucket.
func TestThreeClusters(t *testing.T) {
	t.Parallel()
	var urls []string
	var clusters []*redistest.Sharded
	for range 3 {
		s := cluster(t)
		clusters, urls = append(clusters, s), append(urls, s.URL())
	}
	log := &e2e.Log{}
	timing := e2e.Guarded(4*time.Second, 9*time.Second)
	q := e2e.OpenAt(t, urls, timing, log.Option())
	require.NoError(t, q.Bootstrap(t.Context()))
	ctx := deadline(t)
	names := manyNames()
	lockAll := func() {
		t.Helper()
		for _, name := range names {
			m := mutex.New(q, name)
			require.NoError(t, m.LockContext(ctx), name)
			m.Unlock()
		}
	}
	lockAll()
	for i, s := range clusters {
		assert.Equal(t, script.Buckets, connections(t, s), "to cluster %d: one for each bucket", i)
	}
	var holds []*mutex.Mutex
	slot, master := slotOf(t, clusters[0], names[0])
	for i := 0; len(holds) < 5; i++ {
		name := fmt.Sprint("held ", i)
		if _, at := slotOf(t, clusters[0], name); at == master {
			holds = append(holds, mutex.New(q, name))
			require.NoError(t, holds[len(holds)-1].LockContext(ctx))
		}
	}
	before := len(log.Lines(""))
	require.NoError(t, master.Kill())
	lockAll()
	require.True(t, e2e.EventuallyWithin(mostFailover, func() bool {
		at, err := clusters[0].Master(t.Context(), slot)
		return err == nil && at != master
	}))
	require.True(t, e2e.EventuallyWithin(mostFailover, func() bool {
		r, err := q.Check(t.Context())
		return err == nil && r.Ready == 3
	}), "it counts again")
	lockAll()
	for _, m := range holds {
		assert.NoError(t, m.Lease().Context().Err())
		m.Unlock()
	}
	lines := log.Lines("")[before:]
	t.Logf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	assert.NotEmpty(t, lines)
	assert.Less(t, len(lines), 16)
}

// carries is what such a connection has sent last: a request, or what an idle
// client asks.
var carries = regexp.MustCompile(` cmd=(evalsha|getrange|time) `)

// connections is how many of a process's connections the masters of a cluster
// have that carry requests.
func connections(t *testing.T, s *redistest.Sharded) (n int) {
	t.Helper()
	for i := range 3 {
		list, err := s.Node(i).Client().ClientList(t.Context()).Result()
		require.NoError(t, err)
		n += len(carries.FindAllString(list, -1))
	}
	return n
}
