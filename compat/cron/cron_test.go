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
	"github.com/quorate/quorate/internal/testkit/memory"
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

// Lines of cron as periods, in the nights in which Berlin's clocks change: a
// daily job has one run, and an hourly job has one run in each hour.
func TestNights(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	spring, autumn := time.Date(2026, 3, 29, 0, 15, 0, 0, time.UTC),
		time.Date(2026, 10, 25, 0, 15, 0, 0, time.UTC)
	for line, want := range map[string][2]string{
		"30 2 * * *":    {"01:00 ", "00:30 "},
		"0 3 * * *":     {"01:00 ", "02:00 "},
		"0 * * * *":     {"01:00 02:00 ", "01:00 02:00 "},
		"30,40 2 * * *": {"01:00 ", "00:30 00:40 "},
		"20 1-4 * * *":  {"00:20 01:00 01:20 02:20 ", "00:20 01:20 02:20 "},
		"30 2 * * 1-5":  {"", ""}, // it is a Sunday
		"*/30 * * * *":  {"00:30 01:00 01:30 02:00 02:30 ", "00:30 01:00 01:30 02:00 02:30 "},
	} {
		for i, night := range []time.Time{spring, autumn} {
			synctest.Test(t, func(t *testing.T) {
				nodes := memory.NewNodes(1)
				nodes[0].SetClock(time.Until(night))
				q, err := quorate.New(nodes.Clients(t), nodes.Option(), quorate.WithLogger(nil))
				require.NoError(t, err)
				defer func() { _ = q.Close() }()
				require.NoError(t, q.Bootstrap(t.Context()))
				schedule, err := cron.ParseStandard(line)
				require.NoError(t, err)
				p := period.NewScheduled(q, "report", schedule, period.WithZone(berlin))
				ctx, cancel := context.WithTimeout(t.Context(), 140*time.Minute)
				defer cancel()
				got := ""
				for p.Wait(ctx) == nil {
					_, err := p.Do(ctx, func(ctx context.Context) error {
						got += period.Start(ctx).Format("15:04 ")
						return nil
					})
					require.NoError(t, err)
				}
				assert.Equal(t, want[i], got, "%s at %v", line, night)
			})
		}
	}
}

// The schedules of cron that cannot be periods are refused, and those that can
// be are not.
func TestSchedules(t *testing.T) {
	c := quoratetest.New(t, 1)
	q := c.Quorum()
	for line, want := range map[string]string{
		"0 2 30 2 *": "never fires", "@every 1h": "use period.New", "@every 90s": "use period.New",
		"@daily": "", "0 0 29 2 *": "", "0 0 29 2 1": "", "59 23 31 12 *": "", "* * * * *": "", "@every 1s": "",
	} {
		schedule, err := cron.ParseStandard(line)
		require.NoError(t, err)
		_, err = period.NewScheduled(q, "report", schedule).Last(t.Context())
		if want == "" {
			require.NoError(t, err, line)
			continue
		}
		require.ErrorIs(t, err, quorate.ErrInvalid, line)
		require.ErrorContains(t, err, want, line)
	}
}
