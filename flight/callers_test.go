package flight_test

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/flight"
	"github.com/quorate/quorate/quoratetest"
)

// A value whose load has ended is not what a later caller wants, also while it
// is still being recorded.
func TestCallAfterTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		g := flight.New[int64](c.Quorum(), "rates:")
		first := make(chan int64, 1)
		go func() {
			v, err := g.Do(soon(t), "EUR", 0, func(context.Context) (int64, error) {
				c.Stop(0)
				c.Stop(1)
				return 1, nil
			})
			assert.NoError(t, err)
			first <- v
		}()
		time.Sleep(10 * time.Millisecond)
		require.Empty(t, first, "it is being recorded")
		go func() {
			assert.EqualValues(t, 1, <-first)
			c.Start(0)
			c.Start(1)
		}()
		v, err := g.Do(soon(t), "EUR", 0, func(context.Context) (int64, error) { return 2, nil })
		require.NoError(t, err)
		assert.EqualValues(t, 2, v)
	})
}

// A caller that joins another one, which waits for nodes, wants no older result
// than if it had come alone.
func TestCallersOfOneCall(t *testing.T) {
	for fresh, loaded := range map[time.Duration]int64{0: 8, 5 * time.Second: 8, time.Hour: 7} {
		t.Run(fresh.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := quoratetest.New(t, 3)
				q := c.Quorum()
				a, b := flight.New[int64](q, "rates:"), flight.New[int64](c.Quorum(), "rates:")
				_, err := a.Do(soon(t), "warm", 0, func(context.Context) (int64, error) { return 1, nil })
				require.NoError(t, err)
				load := func(v int64) func(context.Context) (int64, error) {
					return func(context.Context) (int64, error) { return v, nil }
				}
				c.Partition(q, 0, 1, 2)
				var all sync.WaitGroup
				join := func() {
					all.Go(func() {
						v, err := a.Do(soon(t), "EUR", fresh, load(8))
						assert.NoError(t, err)
						assert.Equal(t, loaded, v)
					})
				}
				join()
				time.Sleep(10 * time.Second)
				v, err := b.Do(soon(t), "EUR", 0, load(7))
				require.NoError(t, err)
				require.EqualValues(t, 7, v)
				time.Sleep(10 * time.Second)
				join()
				synctest.Wait()
				c.Partition(q)
				all.Wait()
			})
		})
	}
}

// unread is a word that cannot be read back. As it is read under the claim, as
// the load is about to begin, reading is called.
type unread string

var reading func()

func (*unread) UnmarshalJSON([]byte) error {
	if reading != nil && strings.Contains(string(debug.Stack()), ").run(") {
		reading()
	}
	return errors.New("unreadable")
}

// A call whose last caller leaves as the load is about to begin loads nothing,
// and the caller does not wait for a load.
func TestCallerLeavesAsTheLoadBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := flight.New[unread](quoratetest.New(t, 3).Quorum(), "words:")
		loads := 0
		load := func(context.Context) (unread, error) {
			loads++
			return "word", nil
		}
		_, err := g.Do(soon(t), "x", 0, load)
		require.NoError(t, err)
		ctx, leave := context.WithCancel(t.Context())
		reading = func() {
			leave()
			synctest.Wait()
		}
		defer func() { reading = nil }()
		_, err = g.Do(ctx, "x", time.Hour, load)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, 1, loads)
		reading = nil
		_, err = g.Do(soon(t), "x", time.Hour, load)
		require.NoError(t, err)
		assert.Equal(t, 2, loads)
	})
}
