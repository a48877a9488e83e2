package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// directory is a discovery whose answer changes.
type directory struct {
	mu    sync.Mutex
	urls  []string
	err   error
	hangs chan struct{} // nil: it does not
	calls int
}

func (d *directory) find(context.Context) ([]string, error) {
	d.mu.Lock()
	urls, err, hangs := slices.Clone(d.urls), d.err, d.hangs
	d.calls++
	d.mu.Unlock()
	if hangs != nil {
		<-hangs // it ignores its context
	}
	return urls, err
}

func (d *directory) set(err error, urls ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.urls, d.err, d.calls = urls, err, 0
}

// asked reports whether it has been asked n times since set.
func (d *directory) asked(n int) func() bool {
	return func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.calls >= n
	}
}

// connectBy is a client that learns the nodes' addresses from a function.
func connectBy(t *testing.T, f func(context.Context) ([]string, error), opts ...quorate.Option) *quorate.Quorum {
	t.Helper()
	q, err := quorate.Connect(deadline(t), nil, append([]quorate.Option{quorate.WithDiscovery(f), quorate.WithLogger(nil)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// moves starts the server to with the data of the server from, which ends.
func moves(t *testing.T, from, to *redistest.Server) {
	t.Helper()
	require.NoError(t, from.Kill())
	copies(t, from, to)
}

// copies starts the server to with the data of the server from.
func copies(t *testing.T, from, to *redistest.Server) {
	t.Helper()
	require.NoError(t, to.Kill())
	const data = "appendonlydir"
	require.NoError(t, os.RemoveAll(filepath.Join(to.Dir(), data)))
	require.NoError(t, os.CopyFS(filepath.Join(to.Dir(), data), os.DirFS(filepath.Join(from.Dir(), data))))
	require.NoError(t, to.Restart())
}

// A client whose list comes from a function finds a server again that moves
// with its data, while it holds a lock and another one waits: the hold and the
// place stay, and the node counts at its new address.
func TestDiscoveryFindsANodeThatHasMoved(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4, redistest.WithAOF("always"), redistest.WithPassword("secret"))
	var d directory
	d.set(nil, c.URLs()[:3]...)
	timing := e2e.Timing(3 * time.Second) // the node that moves votes after a guard time, within e2e.Patience
	q := connectBy(t, d.find, timing)
	recorded(t, q)
	other := connectBy(t, d.find, timing)
	holder, waiter := mutex.New(q, "m"), mutex.New(other, "m")
	require.NoError(t, holder.LockContext(deadline(t)))
	held := holder.Lease().Context()
	turn := make(chan error, 1)
	go func() { turn <- waiter.LockContext(deadline(t)) }()

	moves(t, c.Node(2), c.Node(3))
	d.set(nil, c.Node(0).URL(), c.Node(1).URL(), c.Node(3).Addr()) // its password is the first node's
	for _, q := range []*quorate.Quorum{q, other} {
		require.True(t, e2e.Eventually(func() bool {
			r, err := q.Check(t.Context())
			if err != nil || len(r.Nodes) < 3 { // the node is on its way
				return false
			}
			n := r.Nodes[2]
			return n.Node == c.Node(3).Addr() && n.Membership == "member" && n.CaughtUp && n.Recovering == 0
		}), "the node counts at its new address")
	}
	require.NoError(t, held.Err())
	require.NoError(t, c.Node(0).Kill())
	holder.Unlock()
	require.NoError(t, e2e.Receive(t, turn), "the two others are a majority")
	waiter.Unlock()
}

// An empty server at a new address gets no vote, whatever the function says,
// while the member's server is down.
func TestDiscoveryGivesAnEmptyServerNoVote(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	var d directory
	d.set(nil, c.URLs()[:3]...)
	q := connectBy(t, d.find, e2e.Timing(200*time.Millisecond))
	recorded(t, q)
	require.NoError(t, c.Node(2).Kill())
	d.set(nil, c.Node(0).URL(), c.Node(1).URL(), c.Node(3).URL())
	require.True(t, e2e.Eventually(d.asked(2)))
	require.True(t, e2e.Eventually(func() bool {
		r, err := q.Check(t.Context())
		return err == nil && len(r.Nodes) == 3 && r.Nodes[2].Node == c.Node(2).Addr() && r.Nodes[2].Err != nil
	}))
	assert.Zero(t, c.Node(3).Client().DBSize(t.Context()).Val(), "the server was left as it was")
}

// A function that fails or hangs delays nothing. What it fails with stands
// beside the node's error, without passwords.
func TestDiscoveryFails(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	var d directory
	d.set(nil, c.URLs()...)
	q := connectBy(t, d.find, e2e.Timing(200*time.Millisecond))
	recorded(t, q)
	d.set(errors.New(`parse "redis://user:hunter2@x": no`))
	require.NoError(t, c.Node(2).Kill())
	m := mutex.New(q, "m")
	var failed string
	require.True(t, e2e.Eventually(func() bool {
		r, err := q.Check(t.Context())
		if err != nil || len(r.Nodes) < 3 || r.Nodes[2].Err == nil {
			return false
		}
		failed = r.Nodes[2].Err.Error()
		return strings.Contains(failed, "where the nodes are is not known: ")
	}))
	assert.Contains(t, failed, "redis://***@x")
	assert.NotContains(t, failed, "hunter2")
	hangs := make(chan struct{})
	defer close(hangs)
	d.mu.Lock()
	d.calls, d.hangs = 0, hangs
	d.mu.Unlock()
	require.True(t, e2e.Eventually(d.asked(1)))
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
	closed := make(chan error, 1)
	go func() { closed <- q.Close() }()
	_ = e2e.Receive(t, closed) // says what the node that is down has not answered
	assert.False(t, d.asked(2)(), "one call at a time")
}

// Connect asks the function, and uses its own list if the function fails.
func TestConnectWithDiscovery(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	var d directory
	d.set(nil, c.URLs()[:3]...)
	timing := e2e.Timing(200 * time.Millisecond)
	q := connectBy(t, d.find, timing)
	recorded(t, q)
	connect := func(urls ...string) error {
		q, err := quorate.Connect(deadline(t), urls, quorate.WithDiscovery(d.find), quorate.WithLogger(nil), timing)
		if err == nil {
			_ = q.Close()
		}
		return err
	}
	d.set(errors.New("it is out of order"))
	require.ErrorIs(t, connect(), quorate.ErrNoQuorum)
	require.ErrorContains(t, connect(), "it is out of order")
	require.NoError(t, connect(c.URLs()[:3]...))
	d.set(nil, "not an address:x")
	require.ErrorIs(t, connect(), quorate.ErrInvalid)
	d.set(nil)
	require.ErrorContains(t, connect(), "returns no address")

	odd := []string{c.Node(0).URL(), c.Node(1).URL(), c.Node(3).URL()}
	d.set(nil, odd...)
	require.ErrorIs(t, connect(), quorate.ErrInvalid, "it says the same twice")
	assert.True(t, d.asked(2)())
	calls := 0
	late := func(context.Context) ([]string, error) {
		if calls++; calls == 1 {
			return odd, nil
		}
		return c.URLs()[:3], nil
	}
	connectBy(t, late, timing)
	assert.Equal(t, 2, calls, "the first list was an old one")

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	hangs := make(chan struct{})
	defer close(hangs)
	_, err := quorate.Connect(ctx, nil, quorate.WithDiscovery(func(context.Context) ([]string, error) { <-hangs; return nil, nil }), timing)
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// Without a recorded set the function is asked at the start only: nothing else
// says which server is which node.
func TestDiscoveryWithoutASet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	require.NoError(t, e2e.DeclareUnrecorded(c.URLs()))
	var d directory
	d.set(nil, c.URLs()...)
	q := connectBy(t, d.find, e2e.Timing(200*time.Millisecond))
	assert.True(t, d.asked(1)())
	require.NoError(t, c.Node(2).Kill())
	require.True(t, e2e.Eventually(func() bool {
		r, err := q.Check(t.Context())
		return err == nil && len(r.Nodes) == 3 && r.Nodes[2].Err != nil
	}))
	m := mutex.New(q, "m")
	for range 3 {
		require.NoError(t, m.LockContext(deadline(t)))
		time.Sleep(100 * time.Millisecond) // the function is asked after that at the latest, where a set is recorded
		m.Unlock()
	}
	assert.False(t, d.asked(2)())
	require.NoError(t, core.CoreOf(q).Close(deadline(t)))
}
