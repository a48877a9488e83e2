package period_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/period"
	"github.com/quorate/quorate/quoratetest"
)

// A run that failed is repeated in its period only if asked.
func TestFailure(t *testing.T) {
	broken := errors.New("broken")
	for name, fail := range map[string]func(){
		"error": func() {}, "panic": func() { panic(broken) }, "Goexit": runtime.Goexit,
	} {
		for _, opts := range [][]quorate.PeriodOption{nil, {period.WithRetry()}} {
			t.Run(fmt.Sprint(name, " ", len(opts)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := quoratetest.New(t, 3)
					p := period.New(c.Quorum(), "report", 24*time.Hour, opts...)
					ended := make(chan error, 1)
					go func() {
						err := broken
						defer func() { _ = recover(); ended <- err }()
						_, err = p.Do(soon(t), func(context.Context) error { fail(); return broken })
					}()
					require.ErrorIs(t, <-ended, broken)
					last, err := p.Last(soon(t))
					require.NoError(t, err)
					assert.NotEqual(t, period.Done, last.State)
					for i := range 2 {
						ran, err := p.Do(soon(t), func(context.Context) error { return nil })
						require.NoError(t, err)
						assert.Equal(t, len(opts) > 0 && i == 0, ran)
					}
				})
			})
		}
	}
}

// The work of a process that dies is repeated in its period only if asked, and
// a process that lost its claim cannot spoil what is recorded.
func TestLoss(t *testing.T) {
	for _, opts := range [][]quorate.PeriodOption{nil, {period.WithRetry()}} {
		synctest.Test(t, func(t *testing.T) {
			c := quoratetest.New(t, 3)
			dies, q := c.Quorum(), c.Quorum()
			p := period.New(q, "report", 24*time.Hour, opts...)
			var first uint64
			ran, err := period.New(dies, "report", 24*time.Hour, opts...).Do(soon(t), func(ctx context.Context) error {
				first = period.Lease(ctx).Token()
				c.Partition(dies, 0, 1, 2)
				<-ctx.Done()
				assert.ErrorIs(t, context.Cause(ctx), quorate.ErrLost)
				return nil
			})
			assert.True(t, ran)
			require.ErrorIs(t, err, quorate.ErrLost)
			assert.Equal(t, len(opts) > 0, errors.Is(err, quorate.ErrNoQuorum), "it may be run again: %v", err)
			assert.NotErrorIs(t, err, context.DeadlineExceeded, "the context of Do goes on")
			c.Partition(dies)
			time.Sleep(time.Minute)
			count := 0
			for range 3 {
				_, err = p.Do(soon(t), func(ctx context.Context) error {
					assert.Greater(t, period.Lease(ctx).Token(), first)
					count++
					return nil
				})
				require.NoError(t, err)
			}
			assert.Equal(t, len(opts), count)
			last, err := p.Last(soon(t))
			require.NoError(t, err)
			assert.Equal(t, len(opts) > 0, last.State == period.Done)
		})
	}
}

// With WithRetry Wait returns often enough that another process repeats what
// one that died has begun, within the period.
func TestWaitForARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		dies, q := c.Quorum(), c.Quorum()
		begun := make(chan struct{})
		go period.New(dies, "report", time.Hour, period.WithRetry()).Do(t.Context(),
			func(ctx context.Context) error {
				close(begun)
				<-t.Context().Done()
				return nil
			})
		<-begun
		c.Partition(dies, 0, 1, 2)
		died := time.Now()
		p := period.New(q, "report", time.Hour, period.WithRetry())
		for ran := false; !ran; {
			require.NoError(t, p.Wait(soon(t)))
			var err error
			ran, err = p.Do(soon(t), func(context.Context) error { return nil })
			require.NoError(t, err)
		}
		assert.Less(t, time.Since(died), 3*time.Minute)
	})
}
