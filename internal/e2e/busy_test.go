package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// A server that is busy with another program's script refuses what comes, with
// BUSY. A lock that is released meanwhile is free once the script has ended,
// not only when its lease has.
func TestReleaseAtABusyServer(t *testing.T) {
	t.Parallel()
	const ttl = 30 * time.Second
	c := redistest.Start(t, 1)
	q, other := e2e.Open(t, c, e2e.Timing(ttl)), e2e.OpenAt(t, c.URLs(), e2e.Timing(ttl))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	end := keepBusy(t, c.Node(0))
	assert.ErrorContains(t, m.UnlockContext(t.Context()), "BUSY")
	end()
	next := mutex.New(other, "m")
	require.NoError(t, next.LockContext(deadline(t)), "the lease lasts for longer")
	next.Unlock()
}

// Close sends a leave that is in its pause, and waits for it.
func TestCloseInThePauseOfARelease(t *testing.T) {
	t.Parallel()
	const ttl = 10 * time.Minute
	c := redistest.Start(t, 1)
	// A quarter of this is the pause: no machine is so slow that it is over
	// before Close.
	q := e2e.Open(t, c, e2e.Timing(ttl), quorate.WithNodeTimeout(ttl/4))
	other := e2e.OpenAt(t, c.URLs(), e2e.Timing(ttl))
	m := mutex.New(q, "m")
	require.True(t, e2e.Eventually(func() bool { // a server that has little time may refuse the leave too late
		require.NoError(t, m.LockContext(deadline(t)))
		end := keepBusy(t, c.Node(0))
		defer end()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return strings.Contains(fmt.Sprint(m.UnlockContext(ctx)), "BUSY")
	}))
	require.NoError(t, q.Close())
	next := mutex.New(other, "m")
	require.NoError(t, next.LockContext(deadline(t)), "the lease lasts for longer")
	next.Unlock()
}

// Leaves in their pauses are no goroutines: there may be one for each claim.
func TestManyReleasesThatAreRefused(t *testing.T) {
	const claims, ttl = 2000, 10 * time.Minute
	c := redistest.Start(t, 1)
	q := e2e.Open(t, c, e2e.Timing(ttl), quorate.WithNodeTimeout(ttl/4))
	other := e2e.OpenAt(t, c.URLs(), e2e.Timing(ttl))
	held := make([]*mutex.Mutex, claims)
	for i := range held {
		held[i] = mutex.New(q, fmt.Sprint("m", i))
		require.NoError(t, held[i].LockContext(deadline(t)))
	}
	lacks := func(replicas string) {
		require.NoError(t, c.Node(0).Client().ConfigSet(t.Context(), "min-replicas-to-write", replicas).Err())
	}
	lacks("1")
	before := runtime.NumGoroutine()
	for _, m := range held {
		m.Unlock()
	}
	assert.True(t, e2e.Eventually(func() bool { return errorsOf(t, c.Node(0), "NOREPLICAS") >= claims }))
	// Its answer comes behind those to the releases.
	require.Error(t, mutex.New(q, "last").TryLockContext(deadline(t)))
	assert.Less(t, runtime.NumGoroutine(), before+claims/4)
	lacks("0")
	require.NoError(t, q.Close())
	for i := range held {
		require.NoError(t, mutex.New(other, fmt.Sprint("m", i)).LockContext(deadline(t)))
	}
}

// Close says which node has refused what it releases, or has released before.
func TestCloseAtAServerThatRefuses(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	e2e.Open(t, c, e2e.Timing(10*time.Minute))
	for _, before := range []bool{false, true} {
		q := e2e.OpenAt(t, c.URLs(), e2e.Timing(10*time.Minute))
		m := mutex.New(q, fmt.Sprint("m", before))
		require.NoError(t, m.LockContext(deadline(t)))
		end := keepBusy(t, c.Node(0))
		if before {
			m.Unlock()
		}
		assert.ErrorContains(t, q.Close(), " refused 1 release: BUSY")
		end()
	}
	q := e2e.OpenAt(t, c.URLs(), e2e.Timing(10*time.Minute))
	require.NoError(t, mutex.New(q, "right").LockContext(deadline(t)))
	require.NoError(t, c.Node(0).Client().Do(t.Context(), "ACL", "SETUSER",
		"default", "-eval", "-evalsha").Err())
	assert.ErrorContains(t, q.Close(), " refused 1 release: NOPERM")
}

// The log says once that a server has refused releases for good, and Close says
// how many, although all of them were refused before it was called.
func TestReleasesThatAreRefusedForGood(t *testing.T) {
	t.Parallel()
	const claims = 10
	c := redistest.Start(t, 1)
	var log e2e.Log
	q := e2e.Open(t, c, e2e.Timing(10*time.Minute), log.Option())
	var held []*mutex.Mutex
	for i := range claims {
		held = append(held, mutex.New(q, fmt.Sprint("m", i)))
		require.NoError(t, held[i].LockContext(deadline(t)))
	}
	require.NoError(t, c.Node(0).Client().Do(t.Context(), "ACL", "SETUSER",
		"default", "-eval", "-evalsha").Err())
	for _, m := range held {
		m.Unlock()
	}
	require.True(t, e2e.Eventually(func() bool { return errorsOf(t, c.Node(0), "NOPERM") >= claims }))
	require.True(t, e2e.Eventually(func() bool { return len(log.Lines("refused to release")) > 0 }))
	require.NoError(t, c.Node(0).Client().Do(t.Context(), "ACL", "SETUSER",
		"default", "+eval", "+evalsha").Err())
	assert.ErrorContains(t, q.Close(), " refused 10 releases: NOPERM")
	assert.Len(t, log.Lines("refused to release"), 1)
	assert.Contains(t, log.Lines("refused to release")[0], "NOPERM")
}

// Close says nothing of releases whose leases have ended.
func TestCloseLongAfterARelease(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	var log e2e.Log
	q := e2e.Open(t, c, e2e.Timing(2*time.Second), log.Option())
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	require.NoError(t, c.Node(0).Client().Do(t.Context(), "ACL", "SETUSER",
		"default", "-eval", "-evalsha").Err())
	m.Unlock()
	require.True(t, e2e.Eventually(func() bool { return len(log.Lines("refused to release")) > 0 }))
	time.Sleep(3 * time.Second)
	require.NoError(t, q.Close())
}

// slowLog is a logger that does not return from one line until it may.
type slowLog struct {
	slog.Handler
	line         string
	blocked, may chan struct{}
}

func (h slowLog) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, h.line) {
		h.blocked <- struct{}{}
		<-h.may
	}
	return nil
}

func (slowLog) Enabled(context.Context, slog.Level) bool { return true }

// Nothing is logged once Close has returned, since a log may end with a test or
// a program: Close waits for lines that are being written.
func TestCloseWaitsForTheLog(t *testing.T) {
	t.Parallel()
	for line, event := range map[string]func(t *testing.T, n *redistest.Server,
		q *quorate.Quorum, m *mutex.Mutex){
		"node refused to release a name": func(t *testing.T, n *redistest.Server, _ *quorate.Quorum, m *mutex.Mutex) {
			require.NoError(t, n.Client().Do(t.Context(), "ACL", "SETUSER", "default", "-eval", "-evalsha").Err())
			m.Unlock()
		},
		"a hold was lost": func(t *testing.T, _ *redistest.Server, q *quorate.Quorum, m *mutex.Mutex) {
			require.NoError(t, inspect.Evict(deadline(t), q, "m", m.Lease().Token()))
		},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			const ttl = 10 * time.Minute
			log := slowLog{slog.DiscardHandler, line, make(chan struct{}, 1), make(chan struct{})}
			c := redistest.Start(t, 1)
			q := e2e.Open(t, c, e2e.Timing(ttl), quorate.WithNodeTimeout(ttl/4), quorate.WithLogger(slog.New(log)))
			m := mutex.New(q, "m")
			require.NoError(t, m.LockContext(deadline(t)))
			event(t, c.Node(0), q, m)
			e2e.Receive(t, log.blocked)
			closed := make(chan error, 1)
			go func() { closed <- q.Close() }()
			time.Sleep(200 * time.Millisecond)
			assert.Empty(t, closed, "Close has returned, and the line is not written yet")
			close(log.may)
			e2e.Receive(t, closed)
		})
	}
}

// It says nothing of a server that has refused the claim as well.
func TestCloseBesideAServerThatRefusesAll(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(30*time.Second))
	// All nodes are connected.
	require.NoError(t, mutex.New(q, "first").Do(deadline(t), func(context.Context) error { return nil }))
	require.True(t, e2e.Eventually(func() bool {
		left, err := e2e.Leftovers(deadline(t), c.Node(0))
		return err == nil && len(left) == 0
	}))
	end := keepBusy(t, c.Node(0))
	require.NoError(t, mutex.New(q, "second").LockContext(deadline(t)))
	assert.NoError(t, q.Close())
	end()
}

// A busy server does not get the leave again of a claim that it has refused.
func TestBusyServerHasNoClaims(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(30*time.Second), quorate.WithNodeTimeout(timeout))
	mutex.New(q, "first").Lock() // all nodes are connected
	end := keepBusy(t, c.Node(0))
	locks := 0
	for began := time.Now(); time.Since(began) < 10*timeout; locks++ {
		m := mutex.New(q, fmt.Sprint("m", locks))
		require.NoError(t, m.LockContext(deadline(t)))
		m.Unlock()
	}
	end()
	// A join and its leave, and what has asked whether the server is busy.
	assert.Less(t, errorsOf(t, c.Node(0), "BUSY"), 3*locks)
}

// keepBusy has a server be busy with a script until end is called.
func keepBusy(t *testing.T, n *redistest.Server) (end func()) {
	t.Helper()
	require.NoError(t, n.Client().ConfigSet(t.Context(), "busy-reply-threshold", "1").Err())
	script := n.Client().Conn()
	ended := make(chan error)
	go func() { ended <- script.Eval(t.Context(), "while true do end", nil).Err() }()
	require.True(t, e2e.Eventually(func() bool { return busy(n.Client().Get(t.Context(), "x").Err()) }))
	return func() {
		require.NoError(t, n.Client().ScriptKill(t.Context()).Err())
		require.Error(t, <-ended)
		_ = script.Close()
	}
}

// errorsOf is how often a server has given an error.
func errorsOf(t *testing.T, n *redistest.Server, code string) (count int) {
	t.Helper()
	info := n.Client().Info(t.Context(), "errorstats").Val()
	if _, after, found := strings.Cut(info, "errorstat_"+code+":count="); found {
		_, err := fmt.Sscan(after, &count)
		require.NoError(t, err)
	}
	return count
}

func busy(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "BUSY ") }
