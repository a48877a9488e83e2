package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// A lease of this length ends by itself long after a test has looked: what is
// gone by then has been withdrawn.
const long = 5 * time.Minute

// nodes tells of each server that went down.
type nodes struct{ down chan string }

func (n nodes) Observe(e quorate.Event) {
	if e.Kind == quorate.EventNodeDown {
		n.down <- e.Node
	}
}

// A LockContext whose context ends leaves no key on any server, in whatever
// state the servers and the ways to them are meanwhile.
func TestCancelledLeavesNothing(t *testing.T) {
	t.Parallel()
	type scene struct {
		c       *redistest.Cluster
		ways    []*proxy.Proxy
		m       *mutex.Mutex   // waits and is cancelled; reaches the servers by the ways
		holder  *mutex.Mutex   // goes directly
		present func(node int) // returns when m's claim is on that server
		down    chan string    // servers that m has given up
	}
	stop := func(t *testing.T, s scene, nodes ...int) {
		for _, i := range nodes {
			require.NoError(t, s.c.Node(i).Stop())
		}
	}
	cont := func(t *testing.T, s scene, nodes ...int) {
		for _, i := range nodes {
			require.NoError(t, s.c.Node(i).Cont())
		}
	}
	for _, c := range []struct {
		name  string
		free  bool // no client holds it
		delay time.Duration
		// before comes before LockContext is called, during while it waits,
		// after when it has returned.
		before, during, after func(*testing.T, scene)
	}{
		{name: "behind a holder", during: func(t *testing.T, s scene) { queued(t, s.holder, 1) }},
		{
			name:   "one server stopped before",
			before: func(t *testing.T, s scene) { stop(t, s, 0) },
			during: func(t *testing.T, s scene) { queued(t, s.holder, 1) },
			after:  func(t *testing.T, s scene) { cont(t, s, 0) },
		},
		{
			name:   "one server stopped while it waited",
			during: func(t *testing.T, s scene) { s.present(0); stop(t, s, 0) },
			after:  func(t *testing.T, s scene) { cont(t, s, 0) },
		},
		{
			name: "two servers stopped, not held", free: true,
			before: func(t *testing.T, s scene) { stop(t, s, 0, 1) },
			during: func(t *testing.T, s scene) { s.present(2) },
			after:  func(t *testing.T, s scene) { cont(t, s, 0, 1) },
		},
		{
			name: "all servers stopped, not held", free: true,
			before: func(t *testing.T, s scene) { stop(t, s, 0, 1, 2) },
			after:  func(t *testing.T, s scene) { cont(t, s, 0, 1, 2) },
		},
		{
			name:   "a server stopped for so long that its connection was given up before",
			before: func(t *testing.T, s scene) { stop(t, s, 0) },
			during: func(t *testing.T, s scene) { e2e.Receive(t, s.down) },
			after:  func(t *testing.T, s scene) { cont(t, s, 0) },
		},
		{
			name:   "a server stopped for so long that its connection was given up after",
			before: func(t *testing.T, s scene) { stop(t, s, 0) },
			during: func(t *testing.T, s scene) { queued(t, s.holder, 1) },
			after:  func(t *testing.T, s scene) { e2e.Receive(t, s.down); cont(t, s, 0) },
		},
		{
			name:   "the leave is lost with its connection",
			during: func(t *testing.T, s scene) { s.present(0); s.ways[0].Hold() },
			after:  func(t *testing.T, s scene) { s.ways[0].Reset(); s.ways[0].Release() },
		},
		{
			name: "the answer to the join is lost with its connection", delay: 50 * time.Millisecond,
			during: func(t *testing.T, s scene) { s.present(0); s.ways[0].Reset() },
		},
		{
			name:   "every connection is reset",
			during: func(t *testing.T, s scene) { s.present(0); s.present(1); s.present(2) },
			after: func(t *testing.T, s scene) {
				for _, w := range s.ways {
					w.Reset()
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := scene{c: redistest.Start(t, 3), down: make(chan string, 100)}
			timing, quick := e2e.Timing(long), quorate.WithNodeTimeout(200*time.Millisecond)
			s.holder = mutex.New(e2e.Open(t, s.c, timing, quick), "m")
			var urls []string
			s.ways, urls = e2e.Proxies(t, s.c.URLs(), proxy.Fault{Delay: c.delay})
			s.m = mutex.New(e2e.OpenAt(t, urls, timing, quick, quorate.WithObserver(nodes{s.down})), "m")
			require.True(t, e2e.Eventually(s.m.TryLock)) // it has connected
			unlock(t, s.m)
			e2e.Clean(t, s.c)
			if !c.free {
				s.holder.Lock()
			}
			fences := len(leftovers(t, s.c.Node(0)))
			s.present = func(node int) {
				require.True(t, e2e.Eventually(func() bool { return len(leftovers(t, s.c.Node(node))) > fences }))
			}

			for _, step := range []*func(*testing.T, scene){&c.before, &c.during, &c.after} {
				if *step == nil {
					*step = func(*testing.T, scene) {}
				}
			}
			c.before(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			waiting := e2e.NewQueued(ctx)
			done := make(chan error, 1)
			go func() { done <- s.m.LockContext(waiting) }()
			e2e.Receive(t, waiting.In())
			c.during(t, s)
			cancel() // it waits for no server: those that are stopped go on only after it has returned
			err := e2e.Receive(t, done)
			require.ErrorIs(t, err, context.Canceled)
			c.after(t, s)
			if !c.free {
				unlock(t, s.holder)
			}
			e2e.Clean(t, s.c)
		})
	}
}

// unlock is UnlockContext where a busy machine may not confirm it within the
// node timeout. Clean sees that it arrives.
func unlock(t *testing.T, m *mutex.Mutex) {
	t.Helper()
	if err := m.UnlockContext(t.Context()); !errors.Is(err, quorate.ErrNoQuorum) {
		require.NoError(t, err)
	}
}

func leftovers(t *testing.T, s *redistest.Server) []string {
	t.Helper()
	left, err := e2e.Leftovers(t.Context(), s)
	require.NoError(t, err)
	return left
}
