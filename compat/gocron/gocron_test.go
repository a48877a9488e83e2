package quorategocron_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	quorategocron "github.com/quorate/quorate/compat/gocron"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/period"
	"github.com/quorate/quorate/quoratetest"
)

func TestMain(m *testing.M) { e2e.MainWithNodes(m) }

const patience = 30 * time.Second

func schedule(t *testing.T, every time.Duration, job func(),
	opts ...gocron.SchedulerOption) gocron.Scheduler {
	s, err := gocron.NewScheduler(opts...)
	require.NoError(t, err)
	_, err = s.NewJob(gocron.DurationJob(every), gocron.NewTask(job), gocron.WithName("report"))
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { _ = s.Shutdown() })
	return s
}

// Three schedulers that each start the job five times per period: it runs once.
// The job itself takes no time, so a lock alone would let it run again.
func TestLocker(t *testing.T) {
	c := quoratetest.New(t, 3)
	const every = 500 * time.Millisecond
	var mu sync.Mutex
	counts := map[time.Time]int{}
	enough := make(chan struct{})
	var probe *period.Period
	for range 3 {
		q := c.Quorum()
		probe = period.New(q, "report", every)
		p := probe
		job := func() {
			last, err := p.Last(context.Background()) // which run this is
			mu.Lock()
			defer mu.Unlock()
			if err == nil && len(counts) < 5 {
				if counts[last.Start]++; len(counts) == 5 {
					close(enough)
				}
			}
		}
		schedule(t, every/5, job, gocron.WithDistributedLocker(quorategocron.NewLocker(q, every)))
	}
	select {
	case <-enough:
	case <-time.After(patience):
		t.Error("it does not run in each period")
	}
	mu.Lock()
	defer mu.Unlock()
	for at, n := range counts {
		assert.Equal(t, 1, n, at)
	}
}

func TestLockerSaysWhy(t *testing.T) {
	c := quoratetest.New(t, 3)
	q := c.Quorum()
	l := quorategocron.NewLocker(q, time.Hour*100_000)
	lock, err := l.Lock(t.Context(), "report")
	require.NoError(t, err)
	_, err = l.Lock(t.Context(), "report")
	require.ErrorIs(t, err, quorategocron.ErrNotDue, "it runs")
	require.NoError(t, lock.Unlock(t.Context()))
	require.NoError(t, lock.Unlock(t.Context()))
	_, err = l.Lock(t.Context(), "report")
	require.ErrorIs(t, err, quorategocron.ErrNotDue, "it has had its run")
	_, err = l.Lock(t.Context(), "{report}")
	require.ErrorIs(t, err, quorate.ErrInvalid)
	assert.Panics(t, func() { quorategocron.NewLocker(q, 0) })
	require.NoError(t, q.Close())
	_, err = l.Lock(t.Context(), "report")
	require.ErrorIs(t, err, quorate.ErrClosed)
}

// Of two schedulers the leader runs the jobs. When it stops, the other does.
func TestElector(t *testing.T) {
	c := quoratetest.New(t, 3)
	var runs [2]atomic.Int64
	var stops [2]func()
	for i := range 2 {
		e := quorategocron.NewElector(c.Quorum(), "scheduler")
		require.ErrorIs(t, e.IsLeader(t.Context()), quorategocron.ErrNotLeader)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		stops[i] = sync.OnceFunc(func() {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			assert.Nil(t, e.Term())
		})
		t.Cleanup(stops[i])
		schedule(t, 20*time.Millisecond, func() {
			assert.NotNil(t, e.Term())
			runs[i].Add(1)
		}, gocron.WithDistributedElector(e))
		if i == 0 {
			require.Eventually(t, func() bool { return runs[0].Load() > 2 }, patience, time.Millisecond)
		}
	}
	require.Eventually(t, func() bool { return runs[0].Load() > 10 }, patience, time.Millisecond)
	assert.Zero(t, runs[1].Load())
	stops[0]()
	require.Eventually(t, func() bool { return runs[1].Load() > 2 }, patience, time.Millisecond)
}
