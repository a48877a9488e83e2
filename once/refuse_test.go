package once_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
)

// rule gives some servers a rule of access, such as "-evalsha".
func rule(t *testing.T, c *redistest.Cluster, rule string, nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		require.NoError(t, c.Node(i).Client().Do(t.Context(), "ACL", "SETUSER", "default", rule).Err())
	}
}

// tells waits until the log says that once keeps trying, for that reason.
func tells(t *testing.T, log *e2e.Log, reason string) {
	t.Helper()
	require.True(t, e2e.Eventually(func() bool { return len(log.Lines(reason)) > 0 }), reason)
	assert.Contains(t, log.Lines(reason)[0], "once keeps trying")
}

// What is done is not done again because the nodes refuse to record it.
func TestDoInsistsOnTheRecord(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(q *quorate.Quorum, f func()){
		"Do":    func(q *quorate.Quorum, f func()) { once.New(q, "o").Do(f) },
		"Value": func(q *quorate.Quorum, f func()) { once.Value(q, "o", func() int { f(); return 1 })() },
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t)
			var log e2e.Log
			qs := fleet(t, c, 2, e2e.Timing(quiet), log.Option())
			runs := 0
			done := later(func() error {
				do(qs[0], func() {
					runs++
					rule(t, c, "-evalsha", 0, 1, 2)
				})
				return nil
			})
			tells(t, &log, "done here, not recorded")
			assert.NotEmpty(t, log.Lines("NOPERM"))
			rule(t, c, "+evalsha", 0, 1, 2)
			require.NoError(t, e2e.Receive(t, done))
			assert.Equal(t, 1, runs)
			do(qs[1], func() { t.Error("called a second time") })
		})
	}
}

// It insists until the Quorum is closed.
func TestClosedWhileItCannotBeRecorded(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var log e2e.Log
	qs := fleet(t, c, 2, e2e.Timing(15*ttl), log.Option())
	go once.New(qs[0], "o").Do(func() { rule(t, c, "-evalsha", 0, 1, 2) })
	tells(t, &log, "done here, not recorded")
	require.ErrorContains(t, qs[0].Close(), "refused 1 release:")
	require.True(t, e2e.Eventually(func() bool { return len(log.Lines("waits forever")) == 1 }))
	assert.Contains(t, log.Lines("waits forever")[0], "done here, not recorded: quorum closed")
	rule(t, c, "+evalsha", 0, 1, 2)
	runs := 0
	once.New(qs[1], "o").Do(func() { runs++ })
	assert.Equal(t, 1, runs)
	swept(t, c, qs[1])
}

// swept has requests come to the nodes of "o" until nothing is left there but
// records. A claim that could not leave is dropped by a request that comes to
// its node after its lease. The claim that comes next needs two of three
// nodes, and may leave the third one before that lease ends there.
func swept(t *testing.T, c *redistest.Cluster, q *quorate.Quorum) {
	t.Helper()
	m := mutex.New(q, "o")
	for i := range c.Len() {
		require.True(t, e2e.Eventually(func() bool {
			require.NoError(t, m.Do(t.Context(), func(context.Context) error { return nil }))
			left, err := e2e.Leftovers(t.Context(), c.Node(i))
			return err == nil && !slices.ContainsFunc(left,
				func(l string) bool { return !strings.Contains(l, "}:r = ") })
		}))
	}
}

// With a context the call returns the error at once.
func TestRecordRefused(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	q := e2e.Open(t, c, e2e.Timing(ttl))
	o := once.New(q, "o")
	err := o.DoContext(t.Context(), func(context.Context) error {
		rule(t, c, "-evalsha", 0, 1, 2)
		return nil
	})
	assert.ErrorIs(t, err, once.ErrNotRecorded)
	assert.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.ErrorContains(t, err, "NOPERM")
	for i := range c.Len() { // else the record may be on its way to the last one
		require.True(t, e2e.Eventually(func() bool {
			refused, err := c.Node(i).Client().ACLLog(t.Context(), 1).Result()
			return err == nil && len(refused) > 0
		}))
	}
	rule(t, c, "+evalsha", 0, 1, 2)
	runs := 0
	o.Do(func() { runs++ })
	assert.Equal(t, 1, runs)
	swept(t, c, q)
}

// A record that only a minority has does not count as done while a run that did
// not find it is under way. A claim must read it again first.
func TestUndecided(t *testing.T) {
	t.Parallel()
	// Two of the servers keep the first one's claim to its end, and the second
	// one's must not end while just two can renew it.
	const lasts = 5 * time.Second
	c := cluster(t)
	qs := fleet(t, c, 2, e2e.Timing(lasts))
	a := once.New(e2e.OpenAt(t, c.URLs(), e2e.Guarded(ttl, 2*lasts+20*time.Millisecond)), "o")
	b, observer := once.New(qs[0], "o"), once.New(qs[1], "o")
	err := a.DoContext(t.Context(), func(context.Context) error {
		rule(t, c, "-evalsha", 1, 2)
		return nil
	})
	require.ErrorIs(t, err, once.ErrNotRecorded)
	require.True(t, e2e.Eventually(func() bool {
		text, err := c.Node(0).Client().Get(t.Context(), recordKey).Result()
		return err == nil && strings.Contains(text, `"once":1`)
	}), "one server has it")
	require.NoError(t, c.Node(0).Stop())
	rule(t, c, "+evalsha", 1, 2)
	w := newWork()
	second := later(func() error { return b.DoContext(t.Context(), w.run) })
	lease := once.Lease(e2e.Receive(t, w.began))
	require.NoError(t, c.Node(0).Cont())

	s := status(t, observer)
	assert.Equal(t, once.Running, s.State)
	assert.Equal(t, lease.Token(), s.Token)
	waits := later(func() error { return observer.DoContext(t.Context(), never(t)) })
	waiters(t, observer, 1)
	require.NoError(t, c.Node(2).Stop()) // so the next one cannot do without the one that has it
	boom := errors.New("boom")
	w.end <- boom
	require.ErrorIs(t, e2e.Receive(t, second), boom)
	require.NoError(t, e2e.Receive(t, waits), "the next one has found it")
	require.NoError(t, c.Node(2).Cont())
	assert.Equal(t, once.Done, status(t, observer).State)
}

// A node that cannot be asked is not one that keeps too little.
func TestDurableNotKnown(t *testing.T) {
	t.Parallel()
	c := cluster(t, redistest.WithAOF("always"))
	var log e2e.Log
	q := e2e.Open(t, c, e2e.Timing(quiet), log.Option())
	o := once.New(q, "o", once.WithDurable())
	require.NoError(t, c.Node(0).Client().ConfigSet(t.Context(), "appendonly", "no").Err())
	rule(t, c, "-info", 1)
	err := o.DoContext(t.Context(), never(t))
	assert.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.NotErrorIs(t, err, once.ErrNotDurable)
	assert.ErrorContains(t, err, "3 of 3 nodes connected, 1 can vote, 2 needed")
	assert.ErrorContains(t, err, c.Node(0).Addr()+" appendonly is no")
	assert.ErrorContains(t, err, c.Node(1).Addr()+" cannot be asked what it keeps on disk")

	runs := 0
	done := later(func() error {
		o.Do(func() { runs++ })
		return nil
	})
	tells(t, &log, "cannot be asked")
	rule(t, c, "+info", 1)
	require.NoError(t, e2e.Receive(t, done))
	assert.Equal(t, 1, runs)

	require.NoError(t, c.Node(1).Client().ConfigSet(t.Context(), "appendonly", "no").Err())
	o = once.New(q, "another", once.WithDurable())
	assert.ErrorIs(t, o.DoContext(t.Context(), never(t)), once.ErrNotDurable, "two do keep too little")
}

// Once a majority is known to keep its records on disk, no other node is waited
// for.
func TestDurableWithOneThatHangs(t *testing.T) {
	t.Parallel()
	c := cluster(t, redistest.WithAOF("always"))
	q := e2e.Open(t, c, e2e.Timing(10*time.Minute), quorate.WithNodeTimeout(2*time.Minute))
	require.NoError(t, c.Node(0).Stop())
	t.Cleanup(func() { require.NoError(t, c.Node(0).Cont()) })
	o := once.New(q, "o", once.WithDurable())
	assert.NoError(t, e2e.Receive(t,
		later(func() error { return o.DoContext(t.Context(), func(context.Context) error { return nil }) })))
}

// heldUp is a Quorum whose first node can be asked nothing, and a call of
// DoContext that waits for it, to know what the node keeps on disk.
func heldUp(t *testing.T, c *redistest.Cluster, ctx context.Context) (q *quorate.Quorum, done <-chan error) {
	t.Helper()
	q = e2e.Open(t, c, e2e.Timing(ttl))
	require.NoError(t, c.Node(0).Stop())
	t.Cleanup(func() { require.NoError(t, c.Node(0).Cont()) })
	before := c.Node(1).Calls(t, "config|get")
	o := once.New(q, "o", once.WithDurable())
	done = later(func() error { return o.DoContext(ctx, never(t)) })
	require.True(t, e2e.Eventually(func() bool { return c.Node(1).Calls(t, "config|get") > before }))
	return q, done
}

// While a run reads the record before it begins, three things may end: the
// Quorum, the caller's context, and the time allowed for a node's reply. Each
// has its own error.
func TestEndsBeforeTheWorkBegins(t *testing.T) {
	t.Parallel()
	// Not cluster: a Quorum that is closed while node 0 hangs may leave its
	// claim there, for a lease, as the error of Close says.
	c := redistest.Start(t, 3, redistest.WithAOF("no"))
	require.NoError(t, c.Node(1).Client().ConfigSet(t.Context(), "appendfsync", "always").Err())

	q, done := heldUp(t, c, t.Context())
	assert.ErrorContains(t, q.Close(), "unanswered", "by the node that hangs")
	err := e2e.Receive(t, done)
	assert.ErrorIs(t, err, quorate.ErrClosed)
	for _, other := range []error{context.Canceled, quorate.ErrNoQuorum, once.ErrNotDurable} {
		assert.NotErrorIs(t, err, other)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	require.NoError(t, c.Node(0).Cont())
	_, done = heldUp(t, c, ctx)
	reason := errors.New("the user has gone away")
	cancel(reason)
	err = e2e.Receive(t, done)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, reason)
	assert.NotErrorIs(t, err, once.ErrNotDurable)

	require.NoError(t, c.Node(0).Cont())
	_, done = heldUp(t, c, t.Context())
	err = e2e.Receive(t, done)
	assert.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.NotErrorIs(t, err, context.DeadlineExceeded, "it was not the caller's")
	assert.NotErrorIs(t, err, once.ErrNotDurable)
}
