package flight_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/flight"
	"github.com/quorate/quorate/quoratetest"
)

// A load that asks for its own key, directly or through the load of another
// key, is refused. It used to keep the key claimed for as long as the process
// lived. Later calls load the key.
func TestLoadOfItself(t *testing.T) {
	for name, other := range map[string]struct {
		key   string
		fresh time.Duration
	}{"directly": {"a", 0}, "with another fresh": {"a", time.Second}, "through another key": {"b", 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := flight.New[int](quoratetest.New(t, 3).Quorum(), "f:")
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var kept context.Context
				_, err := g.Do(ctx, "a", 0, func(ctx context.Context) (int, error) {
					kept = context.WithoutCancel(ctx)
					return g.Do(ctx, other.key, other.fresh, func(ctx context.Context) (int, error) {
						return g.Do(ctx, "a", 0, func(context.Context) (int, error) { return 1, nil })
					})
				})
				assert.ErrorIs(t, err, quorate.ErrInvalid)
				assert.ErrorContains(t, err, "would wait for itself")
				assert.NoError(t, ctx.Err(), "it is refused at once")

				soon, cancel := context.WithTimeout(kept, time.Minute)
				defer cancel()
				v, err := g.Do(soon, "a", 0, func(context.Context) (int, error) { return 2, nil })
				require.NoError(t, err)
				require.Equal(t, 2, v)
			})
		})
	}
}

// A load that fails may fall back on an older result of its key.
func TestLoadReadsAnOlderResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := flight.New[int](quoratetest.New(t, 3).Quorum(), "f:")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := g.Do(ctx, "a", time.Minute, func(context.Context) (int, error) { return 1, nil })
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		v, err := g.Do(ctx, "a", time.Minute, func(ctx context.Context) (int, error) {
			return g.Do(ctx, "a", 24*time.Hour, func(context.Context) (int, error) { return 0, errors.New("down") })
		})
		require.NoError(t, err)
		require.Equal(t, 1, v)
	})
}

// unreadable is a value that a faulty version of a program cannot decode.
type unreadable struct{}

func (*unreadable) UnmarshalJSON([]byte) error { panic("cannot decode") }

// A result that arrives while Do waits for another process is decoded in a
// goroutine of the library. If that panics, so does Do, in its caller, and
// nothing stays claimed.
func TestDecodingPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := quoratetest.New(t, 3)
		g := flight.New[unreadable](n.Quorum(), "f:")
		started, loaded := make(chan struct{}), make(chan error, 1)
		finish := make(chan struct{})
		go func() {
			_, err := flight.New[int](n.Quorum(), "f:").Do(t.Context(), "a", 0, func(context.Context) (int, error) {
				close(started)
				<-finish
				return 1, nil
			})
			loaded <- err
		}()
		<-started
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = g.Do(t.Context(), "a", time.Minute,
				func(context.Context) (unreadable, error) { return unreadable{}, nil })
		}()
		synctest.Wait()
		close(finish)
		require.NoError(t, <-loaded)
		require.Equal(t, "cannot decode", <-panicked)
		synctest.Wait()
		require.Empty(t, n.Holders("f:a"))
	})
}
