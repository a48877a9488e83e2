package flight_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/flight"
	"github.com/quorate/quorate/quoratetest"
)

// soon is a context of the bubble: a call that waits for longer is stuck.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// loads counts the loads, each of which takes d.
type loads struct{ n atomic.Int64 }

func (l *loads) load(d time.Duration) func(context.Context) (int64, error) {
	return func(context.Context) (int64, error) {
		n := l.n.Add(1)
		time.Sleep(d)
		return n, nil
	}
}

// A thousand callers in twenty processes want one thing: there is one load,
// also without a fresh time, and all get its result as it ends.
func TestOneLoad(t *testing.T) {
	for _, fresh := range []time.Duration{0, time.Minute} {
		t.Run(fresh.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := quoratetest.New(t, 3)
				var l loads
				var all sync.WaitGroup
				begin := make(chan struct{})
				for range 20 {
					g := flight.New[int64](c.Quorum(), "rates:")
					for range 50 {
						all.Go(func() {
							<-begin
							called := time.Now()
							v, err := g.Do(soon(t), "EUR", fresh, l.load(30*time.Second))
							assert.NoError(t, err)
							assert.EqualValues(t, 1, v)
							assert.Less(t, time.Since(called), 32*time.Second)
						})
					}
				}
				close(begin)
				all.Wait()
				assert.EqualValues(t, 1, l.n.Load())
			})
		})
	}
}

// A result is shared for as long as the caller says, and not longer.
func TestFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		var l loads
		a, b := flight.New[int64](c.Quorum(), "rates:"), flight.New[int64](c.Quorum(), "rates:")
		do := func(g *flight.Group[int64], key string, fresh time.Duration) int64 {
			v, err := g.Do(soon(t), key, fresh, l.load(time.Second))
			require.NoError(t, err)
			return v
		}
		assert.EqualValues(t, 1, do(a, "EUR", time.Minute))
		time.Sleep(50 * time.Second)
		assert.EqualValues(t, 1, do(b, "EUR", time.Minute))
		assert.EqualValues(t, 2, do(b, "EUR", 10*time.Second), "of this caller it is not fresh")
		assert.EqualValues(t, 2, do(a, "EUR", time.Minute))
		assert.EqualValues(t, 3, do(a, "USD", time.Minute))
		time.Sleep(time.Minute)
		assert.EqualValues(t, 4, do(a, "EUR", time.Minute))
		assert.EqualValues(t, 5, do(a, "EUR", 0))
		assert.EqualValues(t, 6, do(a, "EUR", 0))
		time.Sleep(59 * time.Minute)
		assert.EqualValues(t, 6, do(b, "EUR", time.Hour),
			"it is kept for longer than its caller takes it for fresh")
	})
}

// An error is that of the callers of its process. Another process loads.
func TestErrorsAreNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		a, b := flight.New[int64](c.Quorum(), "rates:"), flight.New[int64](c.Quorum(), "rates:")
		broken := errors.New("broken")
		runs := 0
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				_, err := a.Do(soon(t), "EUR", time.Minute, func(context.Context) (int64, error) {
					runs++
					time.Sleep(time.Second)
					return 0, broken
				})
				assert.Equal(t, broken, err)
			})
		}
		synctest.Wait()
		v, err := b.Do(soon(t), "EUR", time.Minute, func(context.Context) (int64, error) { return 7, nil })
		require.NoError(t, err)
		assert.EqualValues(t, 7, v)
		all.Wait()
		assert.Equal(t, 1, runs)
		v, err = a.Do(soon(t), "EUR", time.Minute, nothing)
		require.NoError(t, err)
		assert.EqualValues(t, 7, v)
	})
}

func nothing(context.Context) (int64, error) { return 0, errors.New("must not be called") }

// The process that loads dies. Another one of those that wait loads, after the
// lease, and one alone.
func TestLoaderDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		dies := c.Quorum()
		var l loads
		ended := make(chan error, 1)
		go func() {
			_, err := flight.New[int64](dies, "rates:").Do(soon(t), "EUR", time.Minute,
				func(ctx context.Context) (int64, error) {
					<-ctx.Done()
					return 0, context.Cause(ctx)
				})
			ended <- err
		}()
		synctest.Wait()
		c.Partition(dies, 0, 1, 2)
		died := time.Now()
		var all sync.WaitGroup
		for range 10 {
			g := flight.New[int64](c.Quorum(), "rates:")
			all.Go(func() {
				v, err := g.Do(soon(t), "EUR", time.Minute, l.load(time.Second))
				assert.NoError(t, err)
				assert.EqualValues(t, 1, v)
				assert.Less(t, time.Since(died), 12*time.Second)
			})
		}
		all.Wait()
		assert.EqualValues(t, 1, l.n.Load())
		require.ErrorIs(t, <-ended, quorate.ErrLost)
	})
}

// A caller that leaves says what was missing, and ends no load but the one that
// it alone waits for.
func TestCallersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		a, b := flight.New[int64](c.Quorum(), "rates:"), flight.New[int64](c.Quorum(), "rates:")
		leaving, leave := context.WithCancel(t.Context())
		results := make(chan error, 2)
		ended := make(chan struct{})
		f := func(ctx context.Context) (int64, error) {
			defer close(ended)
			<-ctx.Done()
			return 0, ctx.Err()
		}
		staying, stop := context.WithCancel(t.Context())
		go func() { _, err := a.Do(leaving, "EUR", 0, f); results <- err }()
		synctest.Wait()
		go func() { _, err := a.Do(staying, "EUR", 0, nothing); results <- err }()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.Do(short, "EUR", 0, nothing)
		require.ErrorIs(t, err, quorate.ErrHeld)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, context.Canceled)

		leave()
		err = <-results
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, quorate.ErrHeld)
		synctest.Wait()
		select {
		case <-ended:
			t.Error("another caller waits for the load")
		default:
		}
		stop()
		require.ErrorIs(t, <-results, context.Canceled)
		<-ended
		v, err := b.Do(soon(t), "EUR", 0, func(context.Context) (int64, error) { return 5, nil })
		require.NoError(t, err)
		assert.EqualValues(t, 5, v)
	})
}

// A panic of f is that of each caller of its process.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		g := flight.New[int64](c.Quorum(), "rates:")
		for name, end := range map[string]func(){"boom": func() { panic("boom") }, "Goexit": runtime.Goexit} {
			var all sync.WaitGroup
			var ended atomic.Int32
			for range 3 {
				all.Go(func() {
					defer func() {
						if p := recover(); p == nil && name == "Goexit" || p == name {
							ended.Add(1)
						}
					}()
					_, err := g.Do(soon(t), "EUR", time.Minute,
						func(context.Context) (int64, error) { time.Sleep(time.Second); end(); return 0, nil })
					t.Error("it returned", err)
				})
			}
			all.Wait()
			assert.EqualValues(t, 3, ended.Load(), name)
		}
		v, err := g.Do(soon(t), "EUR", time.Minute, func(context.Context) (int64, error) { return 1, nil })
		require.NoError(t, err)
		assert.EqualValues(t, 1, v)
	})
}

// Without nodes there is no load. A value that was loaded as the nodes went is
// the caller's all the same.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		g := flight.New[int64](q, "rates:")
		v, err := g.Do(soon(t), "EUR", 0, func(context.Context) (int64, error) {
			c.Stop(0)
			c.Stop(1)
			return 3, nil
		})
		require.NoError(t, err)
		assert.EqualValues(t, 3, v)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err = g.Do(ctx, "EUR", time.Minute, nothing)
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		c.Start(0)
		c.Start(1)
		v, err = g.Do(soon(t), "EUR", 0, func(context.Context) (int64, error) { return 4, nil })
		require.NoError(t, err)
		assert.EqualValues(t, 4, v)
		require.NoError(t, q.Close())
		_, err = g.Do(soon(t), "EUR", time.Minute, nothing)
		require.ErrorIs(t, err, quorate.ErrClosed)
	})
}

func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 1)
		q := c.Quorum()
		g := flight.New[string](q, "")
		text := func(s string) func(context.Context) (string, error) {
			return func(context.Context) (string, error) { return s, nil }
		}
		assert.Panics(t, func() { flight.New[func()](q, "") })
		assert.Panics(t, func() { flight.New[int](q, "", nil) })
		assert.Panics(t, func() { _, _ = new(flight.Group[string]).Do(t.Context(), "x", 0, text("")) })
		assert.Panics(t, func() { _, _ = g.Do(t.Context(), "x", 0, nil) })
		assert.Panics(t, func() { _, _ = g.Do(t.Context(), "x", -1, text("")) })
		for _, key := range []string{"", "{x}", strings.Repeat("x", 2000)} {
			_, err := g.Do(t.Context(), key, 0, text("never"))
			require.ErrorIs(t, err, quorate.ErrInvalid, fmt.Sprint(len(key)))
		}
		_, err := g.Do(t.Context(), "x", 0, text(strings.Repeat("x", flight.MaxValue)))
		require.ErrorIs(t, err, quorate.ErrInvalid)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = g.Do(ctx, "x", 0, text("never"))
		require.ErrorIs(t, err, context.Canceled)

		// A record that is not of this type is replaced.
		_, err = g.Do(t.Context(), "x", time.Hour, text("word"))
		require.NoError(t, err)
		n, err := flight.New[int](q, "").Do(t.Context(), "x", time.Hour,
			func(context.Context) (int, error) { return 9, nil })
		require.NoError(t, err)
		assert.Equal(t, 9, n)
	})
}
