package once_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/once"
)

func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		qs := bubbled(c, 2, e2e.Timing(quiet))
		a, b := once.New(qs[0], "o"), once.New(qs[1], "o")
		assert.Equal(t, once.Status{State: once.NotStarted}, status(t, a))
		runs := 0
		f := func() { runs++ }
		before := time.Now()
		a.Do(f)
		a.Do(f)
		b.Do(f)
		assert.Equal(t, 1, runs)

		s := status(t, b)
		host, err := os.Hostname()
		require.NoError(t, err)
		assert.Equal(t, once.Done, s.State)
		assert.Equal(t, host, s.Host)
		assert.Equal(t, os.Getpid(), s.PID)
		assert.WithinRange(t, s.When, before, time.Now())
		assert.True(t, s.Until.IsZero())
		assert.NotZero(t, s.Token)

		// A Once that is known to be done sends no request.
		delay(c, time.Hour)
		a.Do(f)
		b.Do(f)
		require.NoError(t, b.DoContext(t.Context(), never(t)))
		delay(c, 0)

		other := 0
		do := once.Func(qs[0], "other", func() { other++ })
		do()
		do()
		assert.Equal(t, 1, other)
	})
}

func TestOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		qs := bubbled(c, 3, e2e.Timing(quiet))
		a, b, observer := once.New(qs[0], "o"), once.New(qs[1], "o"), once.New(qs[2], "o")
		w := newWork()
		runner := later(func() error { return a.DoContext(t.Context(), w.run) })
		lease := once.Lease(e2e.Receive(t, w.began))
		local := later(func() error { return a.DoContext(t.Context(), never(t)) })
		remote := later(func() error { return b.DoContext(t.Context(), never(t)) })
		waiters(t, observer, 1)
		s := status(t, observer)
		assert.Equal(t, os.Getpid(), s.PID)
		assert.Equal(t, lease.Token(), s.Token)
		assert.WithinDuration(t, time.Now(), s.When, e2e.Patience)

		// A wait that ends says why, in both processes, and ends no
		// other wait.
		for _, o := range []*once.Once{a, b} {
			ctx, cancel := context.WithCancelCause(t.Context())
			queued := e2e.NewQueued(ctx)
			impatient := later(func() error { return o.DoContext(queued, never(t)) })
			e2e.Receive(t, queued.In())
			reason := errors.New("the user has gone away")
			cancel(reason)
			err := e2e.Receive(t, impatient)
			assert.ErrorIs(t, err, context.Canceled)
			assert.ErrorIs(t, err, reason)
			assert.ErrorIs(t, err, quorate.ErrHeld)
		}
		var err error
		assert.True(t, e2e.Eventually(func() bool { // the context may end before a node has answered
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			err = observer.DoContext(short, never(t))
			return errors.Is(err, quorate.ErrHeld)
		}), "%v", err)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		var e *quorate.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, "do", e.Op)
		waiters(t, observer, 1)

		w.end <- nil
		for _, done := range []<-chan error{runner, local, remote} {
			require.NoError(t, e2e.Receive(t, done))
		}
		assert.Equal(t, lease.Token(), status(t, b).Token)
		assert.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrReleased)
	})
}

// With as many as wait here, those at the end would wait long if each before
// them had its turn.
func TestAllWaitersLearnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		c := nodes(t)
		qs := bubbled(c, 3, e2e.Timing(quiet))
		w := newWork()
		runner := later(func() error { return once.New(qs[0], "o").DoContext(t.Context(), w.run) })
		e2e.Receive(t, w.began)
		var all []<-chan error
		for i := range n {
			o := once.New(qs[i%len(qs)], "o") // a value of its own is a claim of its own
			all = append(all, later(func() error { return o.DoContext(t.Context(), never(t)) }))
		}
		waiters(t, once.New(qs[0], "o"), n)
		ended := time.Now()
		w.end <- nil
		require.NoError(t, e2e.Receive(t, runner))
		for _, done := range all {
			require.NoError(t, e2e.Receive(t, done))
		}
		t.Logf("%d returned within %v", n, time.Since(ended).Round(time.Millisecond))
	})
}

// Work that ends by an error, a panic or Goexit is not done: only its caller
// gets the error. The next caller runs it, first here and then elsewhere.
func TestNotDone(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, end := range map[string]func() error{
		"error":  func() error { return boom },
		"panic":  func() error { panic(boom) },
		"Goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t)
			qs := fleet(t, c, 2, e2e.Timing(quiet))
			a, b := once.New(qs[0], "o"), once.New(qs[1], "o")
			fails := func(o *once.Once) (w *work, ended chan any) {
				w, ended = newWork(), make(chan any, 1)
				go func() {
					var err error
					defer func() {
						if p := recover(); p != nil {
							ended <- p
						} else {
							ended <- err
						}
					}()
					err = o.DoContext(t.Context(), func(ctx context.Context) error {
						_ = w.run(ctx)
						return end()
					})
				}()
				return w, ended
			}
			first, firstEnded := fails(a)
			ctx := e2e.Receive(t, first.began)
			local, localEnded := fails(a)
			remote, remoteEnded := fails(b)
			waiters(t, b, 1)
			first.end <- nil
			want := any(boom)
			if name == "Goexit" {
				want = nil
			}
			assert.Equal(t, want, e2e.Receive(t, firstEnded))
			assert.ErrorIs(t, context.Cause(ctx), quorate.ErrReleased)
			e2e.Receive(t, remote.began)
			remote.end <- nil
			assert.Equal(t, want, e2e.Receive(t, remoteEnded))
			e2e.Receive(t, local.began)
			local.end <- nil
			assert.Equal(t, want, e2e.Receive(t, localEnded))

			assert.Equal(t, once.NotStarted, status(t, a).State)
			runs := 0
			b.Do(func() { runs++ })
			a.Do(func() { runs++ })
			assert.Equal(t, 1, runs)
			for i := range c.Len() {
				ttl, err := c.Node(i).Client().PTTL(t.Context(), "quorate:{o}:r").Result()
				require.NoError(t, err)
				assert.Equal(t, time.Duration(-1), ttl, "kept forever")
			}
		})
	}
}

func TestKeepFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keep = 1500 * time.Millisecond
		c := nodes(t)
		qs := bubbled(c, 2, e2e.Timing(600*time.Millisecond), quorate.WithRetention(keep))
		a, b := once.New(qs[0], "o", once.KeepFor(keep)), once.New(qs[1], "o", once.KeepFor(keep))
		var runs atomic.Int32
		f := func() { runs.Add(1) }
		for i := range 2 {
			// A node that got the record late keeps it a little
			// longer. A client that finds it there takes it for
			// done.
			require.True(t, e2e.Eventually(func() bool {
				a.Do(f)
				return int(runs.Load()) == i+1
			}))
			b.Do(f)
			a.Do(f)
			require.EqualValues(t, i+1, runs.Load())
			s := status(t, b)
			assert.Equal(t, keep, s.Until.Sub(s.When))
			require.True(t, e2e.Eventually(func() bool {
				s, err := b.Status(t.Context())
				return err == nil && s.State == once.NotStarted
			}))
			assert.False(t, time.Now().Before(s.Until.Add(-2*time.Millisecond)), "nodes count whole milliseconds")
		}
	})
}
