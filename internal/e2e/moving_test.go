package e2e_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// What docs/operate/moving.md says of the last processes that lock on the old
// servers only: CLIENT LIST shows them by name, and without their user they
// lose what they hold, and get nothing any more.
func TestLastProcessOnOldServers(t *testing.T) {
	t.Parallel()
	old, new := redistest.Start(t, 1), redistest.Start(t, 3)
	e2e.Open(t, old, e2e.Timing(time.Second))
	server := old.Node(0).Client()
	as := func(user, name string) *quorate.Quorum {
		require.NoError(t, server.Do(t.Context(), "ACL", "SETUSER", user, "on",
			">secret", "~*", "&*", "+@all").Err())
		q, err := quorate.Connect(t.Context(),
			[]string{strings.Replace(old.URLs()[0], "://", "://"+user+":secret@", 1) + name},
			e2e.Timing(time.Second), quorate.WithLogger(nil))
		require.NoError(t, err)
		t.Cleanup(func() { _ = q.Close() })
		return q
	}
	named := func(name string) (n int) {
		list, err := server.ClientList(t.Context()).Result()
		require.NoError(t, err)
		for line := range strings.Lines(list) {
			if strings.Contains(line, " name="+name+" ") && !strings.Contains(line, " user=default ") {
				n++
			}
		}
		return n
	}
	first := mutex.New(as("release1", ""), "m")
	require.NoError(t, first.LockContext(deadline(t)))
	second := mutex.Both(as("release2", "?client_name=release2"), e2e.Open(t, new, e2e.Timing(time.Second)), "m")
	require.ErrorIs(t, second.TryLockContext(deadline(t)), quorate.ErrHeld)
	assert.Equal(t, 1, named("quorate"))
	assert.Equal(t, 1, named("release2"))

	require.NoError(t, server.Do(t.Context(), "ACL", "DELUSER", "release1").Err())
	assert.Zero(t, named("quorate"))
	require.NoError(t, second.LockContext(deadline(t)))
	assert.ErrorIs(t, context.Cause(first.Lease().Context()), quorate.ErrLost)
	first.Unlock()
	assert.ErrorIs(t, first.LockContext(deadline(t)), quorate.ErrNoQuorum)
	second.Unlock()
}

// Other primitives pass through a move as Mutexes do, if the hold on new is
// taken inside the one on old.
func TestOtherPrimitivesMove(t *testing.T) {
	t.Parallel()
	a, b := redistest.Start(t, 1), redistest.Start(t, 3)
	e2e.Open(t, a, e2e.Timing(5*time.Second))
	e2e.Open(t, b, e2e.Timing(5*time.Second))
	type do func(ctx context.Context, f func(context.Context) error) error
	for kind, made := range map[string]func(q *quorate.Quorum) do{
		"semaphore": func(q *quorate.Quorum) do {
			s := semaphore.NewWeighted(q, "s", 1)
			return func(ctx context.Context, f func(context.Context) error) error {
				l, err := s.AcquireLease(ctx, 1)
				if err != nil {
					return err
				}
				defer l.Release()
				return f(ctx)
			}
		},
		"rwmutex": func(q *quorate.Quorum) do { return rwmutex.New(q, "rw").Do },
		"leader": func(q *quorate.Quorum) do {
			e := leader.New(q, "l")
			return func(ctx context.Context, f func(context.Context) error) error {
				if err := e.Campaign(ctx, ""); err != nil {
					return err
				}
				return errors.Join(f(ctx), e.Resign(ctx))
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var inside atomic.Int32
			var fleet [6][3]do
			for i := range fleet {
				old := made(e2e.OpenAt(t, a.URLs(), e2e.Timing(5*time.Second)))
				new := made(e2e.OpenAt(t, b.URLs(), e2e.Timing(5*time.Second)))
				both := func(ctx context.Context, f func(context.Context) error) error {
					return old(ctx, func(ctx context.Context) error { return new(ctx, f) })
				}
				fleet[i] = [...]do{old, both, new}
			}
			for step := range 2 {
				var all sync.WaitGroup
				for i := range fleet { // one half is a step ahead of the other
					all.Go(func() {
						for range 10 {
							assert.NoError(t, fleet[i][step+i%2](deadline(t), func(context.Context) error {
								assert.Equal(t, int32(1), inside.Add(1), "step %d", step)
								time.Sleep(time.Millisecond)
								inside.Add(-1)
								return nil
							}))
						}
					})
				}
				all.Wait()
			}
		})
	}
}

// What once has recorded on the old servers is recorded on the new ones, too,
// by a Do with nothing to do after it.
func TestOnceMoves(t *testing.T) {
	t.Parallel()
	old, new := e2e.Open(t, redistest.Start(t, 1), e2e.Timing(time.Second)),
		e2e.Open(t, redistest.Start(t, 3), e2e.Timing(time.Second))
	runs := 0
	work := func(context.Context) error { runs++; return nil }
	require.NoError(t, once.New(old, "o").DoContext(deadline(t), work))
	require.NoError(t, once.New(old, "o").DoContext(deadline(t), work))
	require.NoError(t, once.New(new, "o").DoContext(deadline(t), func(context.Context) error { return nil }))
	require.NoError(t, once.New(new, "o").DoContext(deadline(t), work))
	assert.Equal(t, 1, runs)
}
