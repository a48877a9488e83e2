package members_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/members"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/semaphore"
)

// long is a lease that a machine which stands still for three seconds does not
// end. An exchange takes more than twice as long.
const long = 5 * time.Second

// bounded is a context for all that a test does.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// operator has some servers be a set.
func operator(t *testing.T, urls []string, timing ...quorate.Option) *quorate.Quorum {
	t.Helper()
	q := e2e.OpenAt(t, urls, timing...)
	var err error
	require.True(t, e2e.Eventually(func() bool {
		err = q.Bootstrap(bounded(t))
		return err == nil
	}), "%v", err)
	return q
}

func get(t *testing.T, q *quorate.Quorum) members.List {
	t.Helper()
	l, err := members.Get(bounded(t), q)
	require.NoError(t, err)
	return l
}

func addrs(l members.List) (all []string) {
	for _, m := range l.Members {
		all = append(all, m.Addr)
	}
	return all
}

// A set of three becomes one of one node, and of three again, and one of five
// and of three again, with no pause between the changes. A lock stays held and
// permits too, waiters keep their order, a record stays, and the leader leads.
func TestNothingIsLostAsTheSetChanges(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]func(ctx context.Context, q *quorate.Quorum, u []string) []error{
		"3-1-3": func(ctx context.Context, q *quorate.Quorum, u []string) []error {
			return []error{members.Remove(ctx, q, u[1], u[2]), members.Add(ctx, q, u[1], u[2])}
		},
		"3-5-3": func(ctx context.Context, q *quorate.Quorum, u []string) []error {
			return []error{members.Add(ctx, q, u[3], u[4]), members.Remove(ctx, q, u[3], u[4])}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := redistest.Start(t, 5)
			ctx, timing := bounded(t), e2e.Timing(long)
			list := c.URLs()[:3]
			op := operator(t, list, timing)
			open := func() *quorate.Quorum { return e2e.OpenAt(t, list, timing) }

			m := mutex.New(open(), "m")
			require.NoError(t, m.LockContext(ctx))
			token := m.Lease().Token()
			turns := make(chan uint64, 3)
			for i := range cap(turns) {
				waiter := mutex.New(open(), "m")
				go func() {
					if waiter.LockContext(ctx) != nil {
						turns <- 0
						return
					}
					turns <- waiter.Lease().Token()
					waiter.Unlock()
				}()
				require.True(t, e2e.Eventually(func() bool {
					h, err := m.Holder(ctx)
					return err == nil && h.Waiters == i+1
				}))
			}
			permits := semaphore.NewWeighted(open(), "s", 3)
			require.NoError(t, permits.Acquire(ctx, 2))
			require.NoError(t, once.New(open(), "o").DoContext(ctx, func(context.Context) error { return nil }))
			led := leader.New(open(), "e", leader.WithID("a"))
			require.NoError(t, led.Campaign(ctx, "a"))

			for _, err := range steps(ctx, op, c.URLs()) {
				require.NoError(t, err)
			}
			l := get(t, op)
			assert.ElementsMatch(t, c.Addrs()[:3], addrs(l))
			assert.Equal(t, quorate.StageStable, l.Stage)

			require.NoError(t, context.Cause(m.Lease().Context()), "the lock is held")
			assert.False(t, semaphore.NewWeighted(open(), "s", 3).TryAcquire(2), "the permits are taken")
			require.NoError(t, once.New(open(), "o").DoContext(ctx, func(context.Context) error {
				t.Error("it runs again")
				return nil
			}))
			require.NoError(t, led.HealthCheck(0))
			found, err := leader.New(open(), "e", leader.WithID("b")).Leader(ctx)
			require.NoError(t, err)
			assert.Equal(t, "a", found.ID)
			m.Unlock()
			for range cap(turns) {
				next := e2e.Receive(t, turns)
				assert.Greater(t, next, token, "each waiter is served, and tokens rise")
				token = next
			}
			permits.Release(2)
			require.NoError(t, led.Resign(ctx))
		})
	}
}

// Each member is given a new number as it enters. A dead one is replaced. What
// makes no sense changes nothing.
func TestReplace(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	ctx, q := bounded(t), operator(t, c.URLs()[:3], e2e.Timing(time.Second))
	before := get(t, q)
	require.ErrorIs(t, members.Replace(ctx, q, c.Node(3).Addr(), c.Node(2).URL()), quorate.ErrInvalid)
	require.NoError(t, members.Add(ctx, q, c.Node(2).URL()), "as a call that is repeated")
	require.ErrorIs(t, members.Remove(ctx, q, c.Addrs()[:3]...), quorate.ErrInvalid)
	require.NoError(t, members.Undo(ctx, q), "there is nothing to undo")
	assert.Equal(t, before, get(t, q))

	require.NoError(t, c.Node(2).Kill())
	require.NoError(t, members.Replace(ctx, q, c.Node(2).Addr(), c.Node(3).URL()))
	after := get(t, q)
	assert.ElementsMatch(t, []string{c.Node(0).Addr(), c.Node(1).Addr(), c.Node(3).Addr()}, addrs(after))
	assert.Greater(t, after.Epoch, before.Epoch)
	assert.Equal(t, before.Settings, after.Settings)
	entered := after.Members[slices.Index(addrs(after), c.Node(3).Addr())]
	for _, m := range before.Members {
		assert.NotEqual(t, entered.Number, m.Number)
		assert.NotEqual(t, entered.Identity, m.Identity)
	}
}

// A server that has moved with its data is the same member, with no guard time.
// A server without its data is refused.
func TestMove(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5, redistest.WithAOF("always"))
	ctx, q := bounded(t), operator(t, c.URLs()[:3], e2e.Timing(long))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(ctx))
	before := get(t, q)
	require.NoError(t, c.Node(2).Kill())
	require.NoError(t, c.Node(3).Kill())
	const data = "appendonlydir"
	require.NoError(t, os.RemoveAll(filepath.Join(c.Node(3).Dir(), data)))
	require.NoError(t, os.CopyFS(filepath.Join(c.Node(3).Dir(), data),
		os.DirFS(filepath.Join(c.Node(2).Dir(), data))))
	require.NoError(t, c.Node(3).Restart())

	require.ErrorIs(t, members.Move(ctx, q, c.Node(2).Addr(), c.Node(4).Addr()),
		quorate.ErrInvalid, "it does not have the data")
	require.ErrorIs(t, members.Replace(ctx, q, c.Node(1).Addr(), c.Node(3).URL()),
		quorate.ErrInvalid, "it has a member's data")
	require.NoError(t, members.Move(ctx, q, c.Node(2).Addr(), c.Node(3).Addr()))
	after := get(t, q)
	i := slices.Index(addrs(after), c.Node(3).Addr())
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, before.Members[2].Identity, after.Members[i].Identity)
	require.True(t, e2e.Eventually(func() bool {
		r, err := q.Check(ctx)
		return err == nil && r.Ready == 3
	}))
	require.NoError(t, c.Node(0).Kill())
	require.NoError(t, m.Lease().Context().Err())
	m.Unlock()
	require.NoError(t, m.LockContext(ctx), "the member at its new address is one of the majority")
	m.Unlock()
}

// Settings are changed while a lock is held. A client whose ttl the guard time
// does not cover any more is refused with both numbers.
func TestSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	ctx, q := bounded(t), operator(t, c.URLs(), e2e.Timing(long))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(ctx))
	before := get(t, q).Settings
	require.NoError(t, members.Set(ctx, q, members.Settings{Guard: 3 * long}))
	longer := mutex.New(e2e.OpenAt(t, c.URLs(), e2e.Timing(long*5/4)), "n")
	require.NoError(t, longer.LockContext(ctx))
	require.NoError(t, m.Lease().Context().Err())
	assert.Equal(t, members.Settings{Guard: 3 * long, Retention: before.Retention, Skew: before.Skew},
		get(t, q).Settings)

	require.NoError(t, members.Set(ctx, q, members.Settings{Guard: before.Guard}))
	require.NoError(t, m.Lease().Context().Err())
	assert.Equal(t, before, get(t, q).Settings)
	e2e.Receive(t, longer.Lease().Context().Done())
	require.ErrorIs(t, context.Cause(longer.Lease().Context()), quorate.ErrLost)
	longer.Unlock()
	require.ErrorIs(t, longer.TryLockContext(ctx), quorate.ErrInvalid)
	m.Unlock()
}

// A process whose WithGuard is longer than the guard time of the set is refused
// until that is lengthened, as its error says. The process does so itself.
func TestSetTheGuardTimeToMyOwn(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	operator(t, c.URLs(), e2e.Timing(500*time.Millisecond))
	ctx, q := bounded(t), e2e.OpenAt(t, c.URLs(), e2e.Timing(500*time.Millisecond),
		quorate.WithGuard(2*time.Second))
	m := mutex.New(q, "m")
	err := m.LockContext(ctx)
	require.ErrorIs(t, err, quorate.ErrInvalid)
	require.ErrorContains(t, err, "raise the set's guard time")
	require.NoError(t, members.Set(ctx, q, members.Settings{Guard: 2 * time.Second}))
	require.NoError(t, m.LockContext(ctx))
	m.Unlock()
}

// A change that ends with its context, or that is left half-way, is given up.
func TestUndo(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	q := operator(t, c.URLs()[:3], e2e.Guarded(time.Second, time.Hour)) // a new node learns for that long
	ctx, cancel := context.WithCancel(bounded(t))
	ended := make(chan error, 1)
	go func() { ended <- members.Add(ctx, q, c.Node(3).URL()) }()
	require.True(t, e2e.Eventually(func() bool { return get(t, q).Stage == quorate.StageLearning }))
	assert.Equal(t, members.Enters, get(t, q).Members[3].Role)
	other := e2e.OpenAt(t, c.URLs()[:3], e2e.Guarded(time.Second, time.Hour))
	require.NoError(t, members.Undo(bounded(t), other))
	require.ErrorIs(t, e2e.Receive(t, ended), quorate.ErrInvalid, "another client has undone it")
	assert.ElementsMatch(t, c.Addrs()[:3], addrs(get(t, other)))

	go func() { ended <- members.Replace(ctx, q, c.Node(2).URL(), c.Node(3).URL()) }()
	require.True(t, e2e.Eventually(func() bool { return get(t, q).Stage == quorate.StageLearning }))
	cancel()
	require.ErrorIs(t, e2e.Receive(t, ended), context.Canceled)
	assert.Equal(t, quorate.StageStable, get(t, q).Stage)
	assert.ElementsMatch(t, c.Addrs()[:3], addrs(get(t, q)))
}

// Get waits until the set is known, for as long as its context lasts: while the
// nodes hang, and while they are brand-new. It does not wait where that cannot
// help.
func TestGetWaits(t *testing.T) {
	t.Parallel()
	timing := e2e.Timing(400 * time.Millisecond) // a node timeout of at most 100 ms
	get := func(ctx context.Context, q *quorate.Quorum) <-chan error {
		got := make(chan error, 1)
		go func() {
			_, err := members.Get(ctx, q)
			got <- err
		}()
		return got
	}
	const later = 4 * time.Second // than a try gives up
	c := redistest.Start(t, 3)

	// Brand-new nodes, one of which does not answer: they record nothing.
	require.NoError(t, c.Node(2).Stop())
	op := e2e.OpenAt(t, c.URLs(), timing)
	got := get(bounded(t), op)
	brief, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := members.Get(brief, op)
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Empty(t, got)
	require.NoError(t, c.Node(2).Cont())
	require.NoError(t, e2e.Receive(t, got))

	// Nodes that hang.
	require.NoError(t, c.Node(0).Stop())
	require.NoError(t, c.Node(1).Stop())
	got = get(bounded(t), e2e.OpenAt(t, c.URLs(), timing))
	closed := e2e.OpenAt(t, c.URLs(), timing)
	ends := get(bounded(t), closed)
	time.Sleep(later)
	assert.Empty(t, got)
	assert.Empty(t, ends)
	require.NoError(t, closed.Close())
	assert.ErrorIs(t, e2e.Receive(t, ends), quorate.ErrClosed)
	require.NoError(t, c.Node(0).Cont())
	require.NoError(t, c.Node(1).Cont())
	require.NoError(t, e2e.Receive(t, got))

	// Nodes that refuse.
	for i := range 2 {
		require.NoError(t, c.Node(i).Client().ConfigSet(t.Context(), "requirepass", "secret").Err())
	}
	err = e2e.Receive(t, get(bounded(t), e2e.OpenAt(t, c.URLs(), timing)))
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.NotErrorIs(t, err, context.DeadlineExceeded)
}
