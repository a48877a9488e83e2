package quoratecron_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	quoratecron "github.com/quorate/quorate/compat/cron"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/period"
	"github.com/quorate/quorate/quoratetest"
)

func TestMain(m *testing.M) { e2e.MainWithNodes(m) }

// journal collects what the wrapper logs.
type journal struct {
	mu   sync.Mutex
	errs []error
}

func (l *journal) Info(string, ...any) {}

func (l *journal) Error(err error, _ string, _ ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

// Three replicas have a job at each minute, of which one starts late. Each
// minute has one run, of a job that takes no time.
func TestOncePer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		var mu sync.Mutex
		counts := map[time.Time]int{}
		for i := range 3 {
			late := time.Duration(i) * time.Second
			once := quoratecron.OncePer(t.Context(), c.Quorum(), "report", time.Minute, cron.DiscardLogger)
			s := cron.New(cron.WithChain(func(j cron.Job) cron.Job {
				return cron.FuncJob(func() { time.Sleep(late); j.Run() })
			}, once))
			_, err := s.AddFunc("* * * * *", func() {
				mu.Lock()
				defer mu.Unlock()
				counts[time.Now().Truncate(time.Minute)]++
			})
			require.NoError(t, err)
			s.Start()
			defer func() { <-s.Stop().Done() }()
		}
		time.Sleep(10*time.Minute + 30*time.Second)
		mu.Lock()
		defer mu.Unlock()
		assert.Len(t, counts, 10)
		for at, n := range counts {
			assert.Equal(t, 1, n, at)
		}
	})
}

// job wants a context.
type job struct {
	run func(ctx context.Context) error
}

func (j job) Run()                                 { panic("it has RunContext") }
func (j job) RunContext(ctx context.Context) error { return j.run(ctx) }

// An error has the run repeated, if asked, and is logged.
func TestJobWithAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		var l journal
		broken := errors.New("broken")
		runs := 0
		j := quoratecron.OncePer(t.Context(), q, "report", 24*time.Hour, &l, period.WithRetry())(job{func(ctx context.Context) error {
			assert.NotZero(t, period.Lease(ctx).Token())
			assert.False(t, period.Start(ctx).IsZero())
			if runs++; runs == 1 {
				return broken
			}
			return nil
		}})
		for range 3 {
			j.Run()
		}
		assert.Equal(t, 2, runs)
		require.Len(t, l.errs, 1)
		require.ErrorIs(t, l.errs[0], broken)
		require.NoError(t, q.Close())
		j.Run()
		require.Len(t, l.errs, 2)
		require.ErrorIs(t, l.errs[1], quorate.ErrClosed)
	})
}
