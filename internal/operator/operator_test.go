package operator

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// exchangeSettings have an exchange take about ten seconds: its guard time is
// four and a half.
func exchangeSettings() core.Settings {
	set := core.Defaults()
	set.TTL, set.Skew, set.Guard, set.NodeTimeout = 2*time.Second, 100*time.Millisecond, 4500*time.Millisecond, 500*time.Millisecond
	return set
}

// started is a client that may not be of use to a set yet.
func started(t *testing.T, set core.Settings, nodes ...*redistest.Server) *core.Quorum {
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

func opened(t *testing.T, set core.Settings, nodes ...*redistest.Server) *core.Quorum {
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
	hold *core.Hold
}

// begin fails the test if the hold of before is valid as this one is, or has
// the greater token. It reports whether h is still valid: one that a late
// goroutine brings after its end shows nothing.
func (n *tenancy) begin(t *testing.T, h *core.Hold) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !h.Valid() {
		return false
	}
	if n.hold != nil {
		assert.False(t, n.hold.Valid() && h.Valid(), "two holders")
		assert.Less(t, n.hold.Token(0), h.Token(0), "a token falls")
	}
	n.hold = h
	return true
}

// keeps returns a check that h is not lost until it is called.
func keeps(t *testing.T, q *core.Quorum, h *core.Hold) func() {
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
		client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
		t.Cleanup(func() { _ = client.Close() })
		late.Watch(t, func(ctx context.Context) error { return client.Ping(ctx).Err() })
	}
	return late
}

// mustLast fails the test if a hold is lost. It is excused if the machine stood
// still for so much of its last lease that a renewal of it failed for that: the
// next one begins a third of a lease later.
func mustLast(t *testing.T, late *lateness.Lateness, h *core.Hold) {
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
	s, err := q.NewSpec(core.Spec{Name: "name" + strconv.Itoa(i%len(c.names)), Weight: 1, Capacity: 1, Set: new(exchangeSettings())})
	for err == nil {
		w := waiting{from: time.Now()}
		var h *core.Hold
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
			assert.LessOrEqual(t, w.to.Sub(w.from), exchangeSettings().TTL+still, "a wait outlasts a lease (the machine stood still for %v)", still)
		}
		return c.count.Load(), c.longest
	}
}

// A node is replaced, then two are added, then all but one removed. Holds stay,
// and locks go on.
func TestExchange(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 6)
	set := exchangeSettings()
	operator, q := gives(t, c, 3)
	first := held(t, q, "first")
	kept := keeps(t, q, first)
	stop := users(t, q, operator, q)
	step := func(add, remove []string) {
		t.Helper()
		began := time.Now()
		require.NoError(t, Run(minute(t), operator, Exchange{Add: add, Remove: remove, Progress: func(p Progress) { t.Logf("%v %+v", time.Since(began).Round(time.Millisecond), p) }}))
		t.Log(config(operator))
		kept()
	}
	step(c.URLs()[3:4], c.URLs()[2:3])
	step(c.URLs()[4:6], nil)
	late := opened(t, set, c.Node(3), c.Node(4), c.Node(5))
	held(t, late, "late").Release()
	step(nil, []string{c.Node(0).Addr(), c.Node(3).Addr(), c.Node(4).Addr(), c.Node(5).Addr()})
	assert.Equal(t, []string{c.Node(1).Addr()}, config(operator).Addrs())
	kept()
	n, longest := stop()
	t.Logf("%d locks, the longest wait %v", n, longest)
	first.Release()
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
	c, err := q.Configuration(context.Background())
	if err != nil {
		panic(err)
	}
	return c
}

// held is a hold on a name.
func held(t *testing.T, q *core.Quorum, name string) *core.Hold {
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

func nodesOf(q *core.Quorum) []string { return config(q).Addrs() }

// A node that is gone for good is replaced without it.
func TestExchangeOfADeadNode(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	operator, q := gives(t, c, 3)
	first := held(t, q, "first")
	kept := keeps(t, q, first)
	require.NoError(t, c.Node(1).Kill())
	stop := users(t, q, operator)
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:], Remove: c.URLs()[1:2]}))
	assert.Equal(t, []string{c.Node(0).Addr(), c.Node(2).Addr(), c.Node(3).Addr()}, nodesOf(operator))
	require.Eventually(t, func() bool { return len(nodesOf(q)) == 3 && nodesOf(q)[2] == c.Node(3).Addr() }, time.Minute, time.Millisecond)
	stop()
	kept()
	first.Release()
}

// What makes no sense, and a server that cannot be a node of the set, is
// refused at once, and nothing is begun.
func TestExchangeIsRefused(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 6)
	operator, _ := gives(t, c, 3)
	loner, _ := gives(t, redistest.Start(t, 1), 1)
	blank := opened(t, exchangeSettings(), c.Node(5))
	require.NoError(t, c.Node(4).Kill())
	localhost := func(i int) string { return "localhost" + c.Node(i).Addr()[len("127.0.0.1"):] }
	cases := []struct {
		x    Exchange
		says string
	}{
		{Exchange{}, "nothing is to be changed"},
		{Exchange{Undo: true, Remove: c.URLs()[:1]}, "not both"},
		{Exchange{Remove: c.URLs()[3:4]}, "is no node of the set"},
		{Exchange{Remove: c.URLs()[:3]}, "no node of the set would be left"},
		{Exchange{Add: nodesOf(loner)}, "has the data of another set"},
		{Exchange{Add: c.URLs()[4:5]}, "cannot be added"},
		{Exchange{Add: []string{localhost(0)}}, "is the same server as"},
		{Exchange{Add: []string{c.Node(3).Addr(), localhost(3)}}, "is the same server as"},
		{Exchange{Add: []string{"redis://u:secret@host:x"}}, "the URL is not of the form"},
		{Exchange{Move: []Move{{From: c.Addrs()[0], To: c.Addrs()[3]}}}, "is not the member"},
		{Exchange{Move: []Move{{From: c.Addrs()[3], To: c.Addrs()[5]}}}, "is no node of the set"},
	}
	for _, k := range cases {
		err := Run(minute(t), operator, k.x)
		require.ErrorIs(t, err, core.ErrInvalid, k.says)
		assert.ErrorContains(t, err, k.says)
		assert.NotContains(t, err.Error(), "secret")
	}
	copied := c.Node(0).Client().Get(t.Context(), script.SetKey(exchangeSettings().Prefix)).Val()
	require.NoError(t, c.Node(3).Client().Set(t.Context(), script.SetKey(exchangeSettings().Prefix), copied, 0).Err())
	assert.ErrorContains(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:4]}), "it is the member "+c.Node(0).Addr()+", or has that member's data")
	assert.Equal(t, uint64(1), config(operator).Stamp.Epoch())
	assert.ErrorContains(t, Run(minute(t), blank, Exchange{Remove: c.URLs()[5:]}), "recorded no set")
}

// Clients that are given the new list before the exchange use the set, and work
// on afterwards.
func TestExchangeForClientsWithTheNewList(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	operator, q := gives(t, c, 3)
	early := opened(t, exchangeSettings(), c.Node(3), c.Node(0), c.Node(1))
	first := held(t, early, "first")
	finds(t, q, "first", first)
	kept := keeps(t, early, first)
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:], Remove: c.URLs()[2:3]}))
	kept()
	first.Release()
	held(t, early, "first").Release()
}

// A new node that dies is given up: the set is as before, and the next call
// adds another one.
func TestExchangeIsGivenUp(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	operator, q := gives(t, c, 3)
	first := held(t, q, "first")
	kept := keeps(t, q, first)
	began := make(chan struct{}, 100)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(minute(t))
	go func() {
		ended <- Run(ctx, operator, Exchange{Add: c.URLs()[3:4], Progress: func(p Progress) {
			if p.Stage == "learning" {
				began <- struct{}{}
			}
		}})
	}()
	gone(t, began)
	require.NoError(t, c.Node(3).Kill())
	cancel()
	err := <-ended
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "the set is as it was before")
	assert.Equal(t, c.Addrs()[:3], nodesOf(operator))
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[4:]}))
	assert.Equal(t, []string{c.Addrs()[0], c.Addrs()[1], c.Addrs()[2], c.Addrs()[4]}, nodesOf(operator))
	kept()
	first.Release()
}

// The next call finishes what an operator that died has left half-way, in each
// stage, or undoes it.
func TestExchangeIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"learning", "joint"} {
		for _, undo := range []bool{false, true} {
			t.Run(stage, func(t *testing.T) {
				t.Parallel()
				c := redistest.Start(t, 4)
				first, next := gives(t, c, 3)
				hold := held(t, next, "first")
				kept := keeps(t, next, hold)
				reached := make(chan struct{}, 100)
				ended := make(chan error, 1)
				x := Exchange{Add: c.URLs()[3:], Remove: c.URLs()[:1]}
				dies := x
				dies.Progress = func(p Progress) {
					if p.Stage == stage && p.Await != "" {
						reached <- struct{}{}
					}
				}
				go func() { ended <- Run(minute(t), first, dies) }()
				gone(t, reached)
				require.NoError(t, first.Close(context.Background()))
				err := <-ended
				require.ErrorIs(t, err, core.ErrClosed)
				want := []string{c.Addrs()[1], c.Addrs()[2], c.Addrs()[3]}
				if undo {
					x, want = Exchange{Undo: true}, c.Addrs()[:3]
				}
				require.NoError(t, Run(minute(t), next, x))
				assert.Equal(t, want, nodesOf(next))
				kept()
				hold.Release()
			})
		}
	}
}

// Two operators exchange nodes at once: each does what it was asked for, one
// after the other.
func TestTwoOperators(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	a, b := gives(t, c, 3)
	hold := held(t, a, "first")
	kept := keeps(t, a, hold)
	stop := users(t, a, b)
	ended := make(chan error, 2)
	go func() { ended <- Run(minute(t), a, Exchange{Add: c.URLs()[3:4], Remove: c.URLs()[:1]}) }()
	go func() { ended <- Run(minute(t), b, Exchange{Add: c.URLs()[4:5], Remove: c.URLs()[1:2]}) }()
	assert.NoError(t, <-ended)
	assert.NoError(t, <-ended)
	stop()
	for _, q := range []*core.Quorum{a, b} {
		require.Eventually(t, func() bool { return config(q).Stamp.Epoch() >= 7 }, time.Minute, time.Millisecond)
		assert.ElementsMatch(t, []string{c.Addrs()[2], c.Addrs()[3], c.Addrs()[4]}, nodesOf(q))
	}
	kept()
	hold.Release()
}

// What was decided and is served by no node yet is found in the registers, when
// a node that lost its data has the others asked.
func TestDecisionIsFoundInTheRegisters(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	operator, _ := gives(t, c, 3)
	ballot := func() nodeset.Ballot { return nodeset.NewBallot(time.Now(), rand.Uint32(), "") }
	set := change.Begin(config(operator), change.Goal{Remove: c.Addrs()[:1]}, ballot())
	o, err := operator.Operate(minute(t))
	require.NoError(t, err)
	o.Decide(set)
	for i := range 3 { // what a node that has not moved is asked for is refused
		require.Eventually(t, func() bool {
			_, _, err := o.Look(t.Context(), i, set.Stamp)
			return err == nil
		}, time.Minute, time.Millisecond)
	}
	next := change.Finish(set, ballot())
	require.Equal(t, next.String(), decides(t, operator, set, next).String())
	key := exchangeSettings().Prefix + ":{" + nodeset.SuccessorName(set.Stamp) + "}:r"
	for i := range 3 {
		require.Eventually(t, func() bool { return c.Node(i).Client().Exists(t.Context(), key).Val() == 1 }, time.Minute, 10*time.Millisecond)
	}
	require.NoError(t, c.Node(0).Kill())
	require.NoError(t, c.Node(0).Restart())
	require.Eventually(t, func() bool { return config(operator).Stamp == next.Stamp }, time.Minute, 10*time.Millisecond)
}

// finds shows that a client sees that another holds a name.
func finds(t *testing.T, q *core.Quorum, name string, by *core.Hold) {
	t.Helper()
	s, err := q.NewSpec(core.Spec{Name: name, Weight: 1, Capacity: 1, Set: new(exchangeSettings())})
	require.NoError(t, err)
	h, err := q.Acquire(minute(t), s, true, nil)
	if by.Valid() {
		assert.ErrorIs(t, err, core.ErrHeld)
	} else if err == nil {
		h.Release()
	}
}

// A process that starts with the list of before finds the set, and its lock
// keeps out the others.
func TestListOfBefore(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 6)
	operator, q := gives(t, c, 3)
	held(t, q, "first").Release()
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:], Remove: c.URLs()[:3]}))
	assert.Equal(t, c.Addrs()[3:], nodesOf(operator))
	first := held(t, operator, "first")
	kept := keeps(t, operator, first)
	late := opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2))
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual(c.Addrs()[3:], nodesOf(late)) }, time.Minute, time.Millisecond)
	finds(t, late, "first", first)
	kept()
	first.Release()
	held(t, late, "first").Release()
}

// A client that hears of nothing for two exchanges has lost its hold when it
// comes back, and follows the set.
func TestClientThatMissesTwoExchanges(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	operator, _ := gives(t, c, 3)
	var cut atomic.Bool
	var clients []redis.UniversalClient
	for i := range 3 {
		clients = append(clients, redis.NewClient(&redis.Options{Addr: c.Node(i).Addr(), MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if cut.Load() {
				return nil, errors.New("cut off")
			}
			nc, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return &cuttable{nc, &cut}, err
		}}))
	}
	q, err := core.New(clients, exchangeSettings())
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	mine := held(t, q, "first")
	token := mine.Token(0)
	cut.Store(true)
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:4], Remove: c.URLs()[:1]}))
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[4:5], Remove: c.URLs()[1:2]}))
	assert.False(t, mine.Valid())
	other := held(t, operator, "first")
	assert.Greater(t, other.Token(0), token)
	cut.Store(false)
	want := []string{c.Addrs()[2], c.Addrs()[3], c.Addrs()[4]}
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, nodesOf(q)) }, time.Minute, time.Millisecond)
	token = other.Token(0)
	other.Release()
	mine = held(t, q, "first")
	assert.Greater(t, mine.Token(0), token)
	mine.Release()
}

// cuttable is a connection that passes on nothing while it is cut.
type cuttable struct {
	net.Conn
	cut *atomic.Bool
}

func (c *cuttable) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.cut.Load() {
		return 0, errors.New("cut off")
	}
	return n, err
}

func (c *cuttable) Write(b []byte) (int, error) {
	if c.cut.Load() {
		return 0, errors.New("cut off")
	}
	return c.Conn.Write(b)
}

// All nodes of a list have left since. One of them has entered again, the other
// still runs with what it had. A client with that list uses the set, whichever
// of the two it meets first, and the node that left long ago can be added
// again.
func TestListWhoseNodesHaveAllLeft(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	operator, _ := gives(t, c, 2)
	replace := func(out, in int) {
		require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[in : in+1], Remove: c.URLs()[out : out+1]}))
	}
	replace(1, 2)
	replace(0, 3)
	// Nodes 2 and 3 are the set now. Node 0 shows 0 and 2.
	require.NoError(t, c.Node(1).Client().FlushAll(t.Context()).Err())
	replace(2, 1)
	want := []string{c.Addrs()[3], c.Addrs()[1]}
	require.Equal(t, want, nodesOf(operator))
	for _, list := range [][]*redistest.Server{{c.Node(0), c.Node(1)}, {c.Node(1), c.Node(0)}} {
		q := opened(t, exchangeSettings(), list...)
		require.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, nodesOf(q)) }, time.Minute, time.Millisecond)
		require.NoError(t, q.Ready(minute(t)))
		held(t, q, "first").Release()
	}
	replace(3, 0)
	assert.Equal(t, []string{c.Addrs()[1], c.Addrs()[0]}, nodesOf(operator))
}

// A node that was removed while it was down comes back with its data. It has no
// vote, and changes nothing.
func TestRemovedNodeComesBack(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4, redistest.WithAOF("always"))
	operator, q := gives(t, c, 3)
	first := held(t, q, "first")
	kept := keeps(t, q, first)
	require.NoError(t, c.Node(0).Kill())
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:], Remove: c.URLs()[:1]}))
	require.NoError(t, c.Node(0).Restart())
	late := opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2))
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual(c.Addrs()[1:], nodesOf(late)) }, time.Minute, time.Millisecond)
	finds(t, late, "first", first)
	kept()
	first.Release()
	held(t, late, "first").Release()
	// Its data is of this set, so it can be added again.
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[:1], Remove: c.URLs()[1:2]}))
	assert.Equal(t, []string{c.Addrs()[2], c.Addrs()[3], c.Addrs()[0]}, nodesOf(operator))
	held(t, late, "first").Release()
}

// Of a list's three nodes two have been replaced. What these keep leads a
// client that starts with that list to the set.
func TestTombstonesLeadToTheSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	operator, _ := gives(t, c, 3)
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:4], Remove: c.URLs()[:1]}))
	require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[4:5], Remove: c.URLs()[1:2]}))
	late := opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2))
	held(t, late, "n").Release()
	assert.Equal(t, c.Addrs()[2:], nodesOf(late))
}

// A member moves to another address with its data. Holds go on, and clients
// with the list of before find it.
func TestMemberMoves(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	operator, q := gives(t, c, 3)
	first := held(t, q, "first")
	kept := keeps(t, q, first)
	to := strings.Replace(c.Node(0).Addr(), "127.0.0.1", "localhost", 1)
	require.NoError(t, Run(minute(t), operator, Exchange{Move: []Move{{From: c.Addrs()[0], To: to}}}))
	want := []string{to, c.Addrs()[1], c.Addrs()[2]}
	for _, one := range []*core.Quorum{operator, q, opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2))} {
		require.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, nodesOf(one)) }, time.Minute, time.Millisecond)
		require.Eventually(t, func() bool {
			s, err := one.Survey(t.Context())
			return err == nil && s.Ready == 3 && s.Nodes[0].Addr == to
		}, time.Minute, time.Millisecond)
		finds(t, one, "first", first)
	}
	kept()
	first.Release()
	assert.ErrorContains(t, Run(minute(t), operator, Exchange{Move: []Move{{From: c.Addrs()[0], To: to}}}), "has that address already")
}

// The guard time of a set becomes longer, and shorter, while locks are held. A
// client is refused whose ttl the shorter one does not cover, or that asks for
// a longer one than the set's.
func TestSettingsOfASetChange(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	operator, q := gives(t, c, 3)
	first := held(t, q, "first")
	kept := keeps(t, q, first)
	set := func(to time.Duration) {
		t.Helper()
		require.NoError(t, Run(minute(t), operator, Exchange{Shared: &nodeset.Shared{Guard: to}}))
		require.Eventually(t, func() bool { return config(q).Guard() == to && config(operator).Guard() == to }, time.Minute, time.Millisecond)
	}
	set(7 * time.Second)
	longer := exchangeSettings()
	longer.TTL, longer.Guard = 3*time.Second, 7*time.Second
	held(t, opened(t, longer, c.Node(0), c.Node(1), c.Node(2)), "n").Release()
	set(4500 * time.Millisecond)
	kept()
	first.Release()
	late := started(t, longer, c.Node(0), c.Node(1), c.Node(2))
	var long *core.TTLError
	require.ErrorAs(t, late.Ready(minute(t)), &long)
	longer.TTL, longer.GuardGiven = 2*time.Second, true
	err := started(t, longer, c.Node(0), c.Node(1), c.Node(2)).Ready(minute(t))
	require.ErrorIs(t, err, core.ErrInvalid)
	assert.ErrorContains(t, err, "WithGuard(7s) is longer than the guard time of the set, 4.5s")
}
