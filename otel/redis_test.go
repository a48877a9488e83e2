package otel_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/judge"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/members"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/otel"
	"github.com/quorate/quorate/semaphore"
)

// roundTrips adds up what the spans tell of those that acquired, and how many
// of them had asked the nodes.
func (s *sink) roundTrips() (trips, claims int) {
	for _, span := range s.spans.Ended() {
		for _, a := range span.Attributes() {
			if a.Key == "quorate.round_trips" && a.Value.AsInt64() > 0 {
				trips, claims = trips+int(a.Value.AsInt64()), claims+1
			}
		}
	}
	return trips, claims
}

// uses are what the holders themselves have written down, by name.
type uses struct {
	mu             sync.Mutex
	holds          map[string][]judge.Hold[string]
	failed, losses float64
}

func (u *uses) add(name string, weight int64, l quorate.Lease, from int64, lost bool) {
	to := time.Now().UnixNano()
	u.mu.Lock()
	defer u.mu.Unlock()
	if lost {
		to = min(to, l.ValidUntil().UnixNano())
		u.losses++
	}
	u.holds[name] = append(u.holds[name],
		judge.Hold[string]{Of: name, From: from, To: to, Weight: weight, Token: l.Token()})
}

// of returns how many holds there were of the names, and for how long.
func (u *uses) of(names ...string) (n, seconds float64) {
	for _, name := range names {
		for _, h := range u.holds[name] {
			n, seconds = n+1, seconds+time.Duration(max(0, h.To-h.From)).Seconds()
		}
	}
	return n, seconds
}

const permits = 3

var mutexes = []string{"m 0", "m 1", "m 2", "short"}

// work is one process: goroutines that share mutexes and a semaphore of it, and
// one that loses what it holds.
func (u *uses) work(t *testing.T, q *quorate.Quorum, seed uint64) {
	var all sync.WaitGroup
	var ms []*mutex.Mutex
	for _, name := range mutexes[:3] {
		ms = append(ms, mutex.New(q, name))
	}
	p := semaphore.NewWeighted(q, "p", permits)
	for g := range uint64(4) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, g))
			for range 25 {
				i, pause := r.IntN(len(ms)), time.Duration(r.IntN(1000))*time.Microsecond
				if r.IntN(3) == 0 {
					if err := ms[i].TryLockContext(t.Context()); err != nil {
						assert.ErrorIs(t, err, quorate.ErrHeld)
						u.mu.Lock()
						u.failed++
						u.mu.Unlock()
						continue
					}
				} else if !assert.NoError(t, ms[i].LockContext(t.Context())) {
					return
				}
				from := time.Now().UnixNano()
				time.Sleep(pause)
				u.add(mutexes[i], 1, ms[i].Lease(), from, false)
				ms[i].Unlock()

				l, err := p.AcquireLease(t.Context(), 1+int64(g%2))
				if !assert.NoError(t, err) {
					return
				}
				from = time.Now().UnixNano()
				time.Sleep(pause)
				u.add("p", 1+int64(g%2), l, from, false)
				assert.NoError(t, l.Release())
			}
		})
	}
	all.Go(func() {
		m := mutex.New(q, "short", quorate.WithTTL(400*time.Millisecond),
			quorate.WithNodeTimeout(100*time.Millisecond), quorate.WithoutRenewal())
		for range 3 {
			if !assert.NoError(t, m.LockContext(t.Context())) {
				return
			}
			from := time.Now().UnixNano()
			l := m.Lease()
			<-l.Context().Done()
			u.add("short", 1, l, from, true)
			m.Unlock()
		}
	})
	all.Wait()
}

// What three processes have measured is, at rest, what their goroutines have
// written down themselves and what the nodes have counted. The leases are so
// long that no request is a renewal or a repetition.
func TestMetricsAtRestOnRedis(t *testing.T) {
	c, s := redistest.Start(t, 3), newSink(t)
	var qs []*quorate.Quorum
	for range 3 {
		qs = append(qs, e2e.Open(t, c, append(s.options(), e2e.Timing(10*time.Minute))...))
	}
	for i := range c.Len() {
		assert.Equal(t, 1.0, s.metrics()["quorate.node.up "+c.Node(i).Addr()])
	}
	calls := func() (n []int) {
		for i := range c.Len() {
			n = append(n, c.Node(i).Calls(t, "evalsha"))
		}
		return n
	}

	// Without others at a name the numbers of requests are equal: those until
	// the admission, and a release. Each waits until all nodes have had the one
	// before it, which a node that is slower would get in the same request.
	before, alone := calls(), 0.0
	counted := func(n int) {
		for i := range c.Len() {
			require.True(t, e2e.Eventually(func() bool { return c.Node(i).Calls(t, "evalsha") >= before[i]+n }),
				"node %d", i)
		}
	}
	for round := range 20 {
		for i, q := range qs {
			m := mutex.New(q, "alone "+strconv.Itoa(i)+" "+strconv.Itoa(round%2))
			require.NoError(t, m.LockContext(t.Context()))
			counted(int(2*alone) + 1)
			require.NoError(t, m.UnlockContext(t.Context()))
			alone++
			counted(int(2 * alone))
		}
	}
	trips, claims := s.roundTrips()
	assert.Equal(t, alone, float64(claims))
	for i := range c.Len() {
		assert.Equal(t, before[i]+trips+claims, c.Node(i).Calls(t, "evalsha"), "node %d", i)
	}

	before = calls()
	u := uses{holds: map[string][]judge.Hold[string]{}}
	var all sync.WaitGroup
	for i, q := range qs {
		all.Go(func() { u.work(t, q, uint64(i)) })
	}
	all.Wait()
	for name, holds := range u.holds {
		capacity := int64(1)
		if name == "p" {
			capacity = permits
		}
		assert.Empty(t, judge.Overlaps(holds, capacity), name)
		assert.Empty(t, judge.Falls(holds, capacity), name)
	}

	// A loss is reported by a goroutine of its own.
	require.True(t, e2e.Eventually(func() bool {
		return s.metrics()["quorate.lock.hold.duration lost mutex lost"] >= u.losses
	}))
	got := s.metrics()
	inMutexes, mutexSeconds := u.of(mutexes...)
	inPermits, permitSeconds := u.of("p")
	for k, want := range map[string]float64{
		"quorate.lock.wait.duration held mutex failed":  u.failed,
		"quorate.lock.wait.duration semaphore acquired": inPermits,
		"quorate.lock.hold.duration semaphore released": inPermits,
		"quorate.lock.hold.duration mutex released":     alone + inMutexes - u.losses,
		"quorate.lock.hold.duration lost mutex lost":    u.losses,
		"quorate.lock.lost lost mutex":                  u.losses,
		"quorate.lock.waiting mutex":                    0,
		"quorate.lock.waiting semaphore":                0,
		"quorate.lock.held mutex":                       0,
		"quorate.lock.held semaphore":                   0,
	} {
		v, there := got[k]
		assert.True(t, there && v == want, "%s is %v and not %v", k, v, want)
	}
	local := got["quorate.lock.wait.duration mutex local"]
	assert.Equal(t, alone+inMutexes, got["quorate.lock.wait.duration mutex acquired"]+local)
	// Holders see their holds begin later and end earlier.
	assert.GreaterOrEqual(t, got["quorate.lock.hold.duration mutex released sum"]+
		got["quorate.lock.hold.duration lost mutex lost sum"], mutexSeconds)
	assert.GreaterOrEqual(t, got["quorate.lock.hold.duration semaphore released sum"], permitSeconds)

	// Where others are at a name, a node may also be asked to settle the claim
	// once more after it was admitted, and a try that has failed has sent two
	// requests. What is for several names may be one call. Round trips are
	// those of the node that was asked most often. So these are the most.
	more, again := s.roundTrips()
	more, again = more-trips, again-claims
	assert.Equal(t, inMutexes+inPermits-local, float64(again))
	for i := range c.Len() {
		n := c.Node(i).Calls(t, "evalsha") - before[i]
		t.Logf("node %d: %d calls for %d claims with %d round trips, %.0f failed tries, %.0f local", i,
			n, again, more, u.failed, local)
		assert.LessOrEqual(t, n, more+2*again+2*int(u.failed), "node %d", i)
	}
}

// counted counts the changes of the set, too.
type counted struct {
	*otel.Telemetry
	changes atomic.Int64
}

func (c *counted) Observe(e quorate.Event) {
	if e.Kind == quorate.EventSetChanged {
		c.changes.Add(1)
	}
	c.Telemetry.Observe(e)
}

// A node that has left the set is not shown any more: it would be down for as
// long as this process lives.
func TestANodeThatLeaves(t *testing.T) {
	c, s := redistest.Start(t, 4), newSink(t)
	list, timing := c.URLs()[:3], e2e.Timing(time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	op := e2e.OpenAt(t, list, timing)
	require.True(t, e2e.Eventually(func() bool { return op.Bootstrap(ctx) == nil }))
	observer := &counted{Telemetry: s.given}
	e2e.OpenAt(t, list, timing, quorate.WithObserver(observer))
	shows := func(up map[int]float64) {
		t.Helper()
		want := map[string]float64{"quorate.lock.bare": 0}
		for i, v := range up {
			a := c.Node(i).Addr()
			want["quorate.node.up "+a], want["quorate.node.refuses "+a], want["quorate.node.votes "+a] = v, 0, 0
		}
		require.True(t, e2e.Eventually(func() bool {
			got := s.metrics()
			for name := range got {
				if strings.HasPrefix(name, "quorate.node.votes ") { // 1 once the node's guard time is over
					got[name] = 0
				}
			}
			return maps.Equal(want, got)
		}), "%v", s.metrics())
	}
	shows(map[int]float64{0: 1, 1: 1, 2: 1})
	require.NoError(t, c.Node(2).Kill())
	shows(map[int]float64{0: 1, 1: 1, 2: 0})
	require.Zero(t, observer.changes.Load())
	require.NoError(t, members.Replace(ctx, op, c.Node(2).Addr(), c.Node(3).URL()))
	shows(map[int]float64{0: 1, 1: 1, 3: 1})
	require.NoError(t, members.Remove(ctx, op, c.Node(3).Addr()))
	shows(map[int]float64{0: 1, 1: 1})
	require.GreaterOrEqual(t, observer.changes.Load(), int64(2))
	require.NoError(t, members.Add(ctx, op, c.Node(3).Addr()))
	shows(map[int]float64{0: 1, 1: 1, 3: 1})
}
