package e2e_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
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

// A client whose list leads nowhere asks the function, and finds the set by the
// list that it gives. It asks no more while a quorum is reached.
func TestDiscoveryGivesTheListAgain(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	require.NoError(t, e2e.Declare(c.URLs()))
	var d directory
	d.set(nil, c.URLs()...)
	q := e2e.OpenAt(t, []string{"redis://127.0.0.1:1", "redis://127.0.0.1:2"}, e2e.Timing(200*time.Millisecond), quorate.WithDiscovery(d.find))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	d.set(nil, c.URLs()...)
	time.Sleep(time.Second) // the function is asked after half of that, where no quorum is reached
	assert.False(t, d.asked(1)())
	m.Unlock()
}

// The function binds nothing: empty servers that it names get no vote, and are
// left as they are.
func TestDiscoveryGivesAnEmptyServerNoVote(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5, redistest.WithAOF("always"))
	var d directory
	d.set(nil, c.URLs()[:3]...)
	q := connectBy(t, d.find, e2e.Timing(200*time.Millisecond))
	recorded(t, q)
	for _, i := range []int{1, 2} {
		require.NoError(t, c.Node(i).Kill())
	}
	d.set(nil, c.Node(0).URL(), c.Node(3).URL(), c.Node(4).URL())
	m := mutex.New(q, "m")
	require.True(t, e2e.Eventually(d.asked(2)))
	require.ErrorIs(t, m.TryLockContext(t.Context()), quorate.ErrNoQuorum)
	for _, i := range []int{3, 4} {
		assert.Zero(t, c.Node(i).Client().DBSize(t.Context()).Val())
	}
	for _, i := range []int{1, 2} {
		require.NoError(t, c.Node(i).Restart())
	}
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
}

// A function that fails or hangs delays nothing. What it fails with stands
// beside the node's error, without passwords.
func TestDiscoveryFails(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3, redistest.WithAOF("always"))
	var d directory
	d.set(nil, c.URLs()...)
	q := connectBy(t, d.find, e2e.Timing(200*time.Millisecond))
	recorded(t, q)
	d.set(errors.New(`parse "redis://user:hunter2@x": no`))
	for _, i := range []int{1, 2} {
		require.NoError(t, c.Node(i).Kill())
	}
	m := mutex.New(q, "m")
	var failed string
	require.True(t, e2e.Eventually(func() bool {
		r, _ := q.Check(t.Context())
		if len(r.Nodes) < 3 || r.Nodes[2].Err == nil {
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
	require.NoError(t, c.Node(1).Restart())
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

	require.NoError(t, e2e.Declare(c.URLs()[3:]))
	odd := []string{c.Node(0).URL(), c.Node(3).URL()} // of two sets
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
