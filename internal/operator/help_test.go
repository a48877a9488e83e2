package operator

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// exchangeSettings have an exchange take about ten seconds: its guard time is
// four and a half.
func exchangeSettings() setup.Settings {
	set := setup.Defaults()
	set.TTL, set.Skew, set.Guard, set.NodeTimeout = 2*time.Second, 100*time.Millisecond,
		4500*time.Millisecond, 500*time.Millisecond
	return set
}

// started is a client that may not be of use to a set yet.
func started(t *testing.T, set setup.Settings, nodes ...*redistest.Server) *core.Quorum {
	t.Helper()
	var clients []redis.UniversalClient
	for _, n := range nodes {
		clients = append(clients, n.Client())
	}
	q, err := core.New(clients, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	return q
}

func opened(t *testing.T, set setup.Settings, nodes ...*redistest.Server) *core.Quorum {
	t.Helper()
	q := started(t, set, nodes...)
	require.NoError(t, q.Ready(minute(t)))
	return q
}

// minute bounds what takes two guard times on a quiet machine.
func minute(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// tenancy is what a test knows of a name: the last hold that began.
type tenancy struct {
	mu   sync.Mutex
	hold core.Hold
}

// begin fails the test if the hold of before is valid as this one is, or has
// the greater token. It reports whether h is still valid: one that a late
// goroutine brings after its end shows nothing.
func (n *tenancy) begin(t *testing.T, h core.Hold) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !h.Valid() {
		return false
	}
	if n.hold != (core.Hold{}) {
		assert.False(t, n.hold.Valid() && h.Valid(), "two holders")
		assert.Less(t, n.hold.Token(0), h.Token(0), "a token falls")
	}
	n.hold = h
	return true
}

// keeps returns a check that h is not lost until it is called.
func keeps(t *testing.T, q *core.Quorum, h core.Hold) func() {
	late := watched(t, q)
	return func() {
		t.Helper()
		mustLast(t, late, h)
	}
}

// watched measures by how much the machine and the nodes of q are late.
func watched(t *testing.T, q *core.Quorum) *lateness.Lateness {
	late := lateness.Measure(t)
	for _, addr := range config(q).Addrs() {
		client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
		t.Cleanup(func() { _ = client.Close() })
		late.Watch(t, func(ctx context.Context) error { return client.Ping(ctx).Err() })
	}
	return late
}

// mustLast fails the test if a hold is lost. It is excused if the machine stood
// still for so much of its last lease that a renewal of it failed for that: the
// next one begins a third of a lease later.
func mustLast(t *testing.T, late *lateness.Lateness, h core.Hold) {
	t.Helper()
	if !h.Valid() {
		excused(t, late, h.ValidUntil(), exchangeSettings().TTL)
	}
}

// excused is mustLast for a hold that was lost at end.
func excused(t *testing.T, late *lateness.Lateness, end time.Time, ttl time.Duration) {
	t.Helper()
	assert.Greater(t, late.Within(end.Add(-ttl), end), ttl/5, "a hold is lost, %v ago", time.Since(end))
}

// waiting is a time in which a goroutine waited.
type waiting struct{ from, to time.Time }

// crowd is what goroutines that lock and unlock names see.
type crowd struct {
	names [8]tenancy
	all   sync.WaitGroup
	count atomic.Int64

	mu      sync.Mutex
	lost    []time.Time // when their leases ended
	waits   []waiting   // those of more than a quarter of a lease
	longest time.Duration
}

// join has a goroutine lock and unlock one name until ctx ends.
func (c *crowd) join(ctx context.Context, t *testing.T, q *core.Quorum, i int) {
	name := &c.names[i%len(c.names)]
	s, err := q.NewSpec(core.Spec{Name: "name" + strconv.Itoa(i%len(c.names)), Weight: 1, Capacity: 1,
		Set: new(exchangeSettings())})
	for err == nil {
		w := waiting{from: time.Now()}
		var h core.Hold
		h, err = q.Acquire(ctx, s, false, nil)
		w.to = time.Now()
		c.waited(w, exchangeSettings().TTL)
		if err != nil {
			break
		}
		valid := name.begin(t, h)
		c.count.Add(1)
		time.Sleep(time.Millisecond)
		if !valid || !h.Valid() {
			c.mu.Lock()
			c.lost = append(c.lost, h.ValidUntil())
			c.mu.Unlock()
		}
		h.Release()
	}
	assert.ErrorIs(t, err, context.Canceled)
}

// waited notes how long a goroutine has waited.
func (c *crowd) waited(w waiting, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := w.to.Sub(w.from)
	c.longest = max(c.longest, d)
	if d > ttl/4 {
		c.waits = append(c.waits, w)
	}
}

// users are 24 goroutines that lock and unlock 8 names, until stop. It returns
// how often they did, and how long the longest wait was. The test fails if two
// hold a name at once, a hold is lost, a token falls, or a wait outlasts a
// lease.
func users(t *testing.T, qs ...*core.Quorum) (stop func() (int64, time.Duration)) {
	t.Helper()
	const goroutines = 24
	late := watched(t, qs[0])
	ctx, cancel := context.WithCancel(t.Context())
	var c crowd
	for i := range goroutines {
		c.all.Go(func() { c.join(ctx, t, qs[i%len(qs)], i) })
	}
	return func() (int64, time.Duration) {
		t.Helper()
		cancel()
		c.all.Wait()
		for _, end := range c.lost {
			excused(t, late, end, exchangeSettings().TTL)
		}
		for _, w := range c.waits {
			still := late.Within(w.from, w.to)
			assert.LessOrEqual(t, w.to.Sub(w.from), exchangeSettings().TTL+still,
				"a wait outlasts a lease (the machine stood still for %v)", still)
		}
		return c.count.Load(), c.longest
	}
}

// gives is a set of the first nodes of a cluster, recorded, and two of its
// clients.
func gives(t *testing.T, c *redistest.Cluster, members int) (operator, q *core.Quorum) {
	t.Helper()
	var list []*redistest.Server
	for i := range members {
		list = append(list, c.Node(i))
	}
	operator = opened(t, exchangeSettings(), list...)
	require.NoError(t, operator.Bootstrap(minute(t)))
	return operator, opened(t, exchangeSettings(), list...)
}

// config is what a client counts on, which knows its set.
func config(q *core.Quorum) *nodeset.Configuration {
	c, err := q.Onlooker().Configuration(context.Background())
	if err != nil {
		panic(err)
	}
	return c
}

// held is a hold on a name.
func held(t *testing.T, q *core.Quorum, name string) core.Hold {
	t.Helper()
	s, err := q.NewSpec(core.Spec{Name: name, Weight: 1, Capacity: 1, Set: new(exchangeSettings())})
	require.NoError(t, err)
	h, err := q.Acquire(t.Context(), s, false, nil)
	require.NoError(t, err)
	return h
}

func gone(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-minute(t).Done():
		require.Fail(t, "it has not come to that")
	}
}

// finds shows that a client sees that another holds a name.
func finds(t *testing.T, q *core.Quorum, name string, by core.Hold) {
	t.Helper()
	s, err := q.NewSpec(core.Spec{Name: name, Weight: 1, Capacity: 1, Set: new(exchangeSettings())})
	require.NoError(t, err)
	h, err := q.Acquire(minute(t), s, true, nil)
	if by.Valid() {
		assert.ErrorIs(t, err, fault.ErrHeld)
	} else if err == nil {
		h.Release()
	}
}

func nodesOf(q *core.Quorum) []string { return config(q).Addrs() }
