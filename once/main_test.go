package once_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/quoratetest"
)

func TestMain(m *testing.M) { e2e.MainWithNodes(m) }

// quiet is a ttl so long that nothing is renewed and nothing ends while a test
// lasts.
const quiet = time.Minute

// cluster starts three servers, and sees in the end that nothing is left on
// them but records.
func cluster(t *testing.T, opts ...redistest.Option) *redistest.Cluster {
	t.Helper()
	c := redistest.Start(t, 3, opts...)
	t.Cleanup(func() {
		for i := range c.Len() {
			var left []string
			var err error
			require.True(t, e2e.Eventually(func() bool {
				left, err = e2e.Leftovers(context.Background(), c.Node(i))
				left = slices.DeleteFunc(left, func(l string) bool { return strings.Contains(l, "}:r = ") })
				return err == nil && len(left) == 0
			}), "node %d: %v left behind (%v)", i, left, err)
		}
	})
	return c
}

// fleet is so many Quorums on the same servers: to these, so many processes.
func fleet(t *testing.T, c *redistest.Cluster, n int, opts ...quorate.Option) []*quorate.Quorum {
	t.Helper()
	qs := []*quorate.Quorum{e2e.Open(t, c, opts...)}
	for range n - 1 {
		qs = append(qs, e2e.OpenAt(t, c.URLs(), opts...))
	}
	return qs
}

// nodes starts three nodes in the test's bubble, and sees in the end that no
// work is under way there.
func nodes(t *testing.T) *quoratetest.Cluster {
	t.Helper()
	c := quoratetest.New(t, 3)
	t.Cleanup(func() { assert.Empty(t, c.Holders("o"), "when all Quorums are closed") })
	return c
}

// bubbled is a fleet on nodes in the test's bubble.
func bubbled(c *quoratetest.Cluster, n int, opts ...quorate.Option) (qs []*quorate.Quorum) {
	for range n {
		qs = append(qs, c.Quorum(opts...))
	}
	return qs
}

// delay has all nodes answer so late.
func delay(c *quoratetest.Cluster, d time.Duration) {
	for i := range 3 {
		c.Delay(i, d)
	}
}

// later calls f in a goroutine.
func later(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// status is what the nodes say.
func status(t *testing.T, o *once.Once) once.Status {
	t.Helper()
	s, err := o.Status(t.Context())
	require.NoError(t, err)
	return s
}

// waiters waits until so many claims are queued behind the one that runs it.
func waiters(t *testing.T, o *once.Once, n int) {
	t.Helper()
	var s once.Status
	var err error
	require.True(t, e2e.Eventually(func() bool {
		s, err = o.Status(t.Context())
		return err == nil && s.State == once.Running && s.Waiters == n
	}), "%+v, %v", s, err)
}

// work is a function for a Once that a test lets go on.
type work struct {
	began chan context.Context
	end   chan error
}

func newWork() *work { return &work{make(chan context.Context), make(chan error)} }

func (w *work) run(ctx context.Context) error {
	w.began <- ctx
	return <-w.end
}

// never is a function that must not be called.
func never(t *testing.T) func(context.Context) error {
	return func(context.Context) error {
		t.Error("called a second time")
		return nil
	}
}

// panicText is what a call panics with, or empty.
func panicText(call func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	call()
	return ""
}
