package period_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/testkit/worker"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/period"
)

// workerEnv makes this test binary a worker, with the terms it holds.
const workerEnv = "QUORATE_PERIOD_WORKER"

func TestMain(m *testing.M) {
	var tm terms
	if ok, err := worker.Terms(workerEnv, &tm); ok {
		if err == nil {
			err = work(tm)
		}
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	e2e.MainWithNodes(m)
}

// terms are what a worker gets at its start.
type terms struct {
	URLs  []string
	Every time.Duration
	Begin time.Time
	Count int
	Off   time.Duration // of its scheduler's clock
	Wait  bool          // it has none, and calls Wait
	Sched bool          // the period is that of a schedule
}

// work calls Do in each period, and says which runs are here.
func work(tm terms) error {
	q, err := quorate.Connect(context.Background(), tm.URLs, quorate.WithLogger(nil))
	if err != nil {
		return err
	}
	defer q.Close()
	ctx, cancel := context.WithDeadline(context.Background(), tm.Begin.Add(time.Duration(tm.Count)*tm.Every))
	defer cancel()
	p := period.New(q, "report", tm.Every)
	if tm.Sched {
		p = period.NewScheduled(q, "report", multiples(tm.Every))
	}
	for k := 0; ; k++ {
		if tm.Wait {
			if p.Wait(ctx) != nil {
				return nil
			}
		} else {
			select {
			case <-time.After(time.Until(tm.Begin.Add(time.Duration(k)*tm.Every + tm.Off))):
			case <-ctx.Done():
				return nil
			}
		}
		_, err := p.Do(ctx, func(ctx context.Context) error {
			fmt.Println("run", period.Start(ctx).UnixMilli(), period.Lease(ctx).Token())
			return nil
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// multiples is a schedule of all multiples of a duration.
type multiples time.Duration

func (d multiples) Next(t time.Time) time.Time {
	return t.Truncate(time.Duration(d)).Add(time.Duration(d))
}

// Five processes on three real servers, of which the clocks are apart by the
// skew: each period has one run, unless the machine stood still in it. Three of
// the processes have schedulers whose clocks are apart by the skew as well.
func TestOnServers(t *testing.T) {
	t.Parallel()
	onServers(t, time.Second, 60, false)
}

// The same with a schedule.
func TestScheduleOnServers(t *testing.T) {
	t.Parallel()
	onServers(t, 2*time.Second, 15, true)
}

func onServers(t *testing.T, every time.Duration, periods int, scheduled bool) {
	late := lateness.Measure(t)
	c := redistest.Start(t, 3, redistest.WithClock())
	for i := range c.Len() {
		require.NoError(t, c.Node(i).SetClock(time.Duration(i-1)*950*time.Millisecond, 1))
	}
	e2e.Open(t, c, quorate.WithTTL(8*time.Second))
	lines := make(chan string, 1000)
	begin := time.Now().Add(time.Second).Truncate(every)
	var all []*worker.Worker
	for i := range 5 {
		cmd, err := worker.Self(workerEnv, terms{
			URLs: c.URLs(), Every: every, Begin: begin, Count: periods + 2, Wait: i > 2,
			Off:   time.Duration(i-1) * time.Second,
			Sched: scheduled,
		})
		require.NoError(t, err)
		w, err := worker.Start(cmd, func(line string) { lines <- line })
		require.NoError(t, err)
		t.Cleanup(func() { _ = w.Kill() })
		all = append(all, w)
	}
	for _, w := range all {
		<-w.Done()
		assert.NoError(t, w.Failure())
	}
	close(lines)
	counts, tokens := map[int64]int{}, map[int64]uint64{}
	for line := range lines {
		var start int64
		var token uint64
		_, err := fmt.Sscanf(line, "run %d %d", &start, &token)
		require.NoError(t, err, line)
		counts[start]++
		tokens[start] = token
	}
	for at, n := range counts {
		assert.Equal(t, 1, n, "runs in the period from %v", time.UnixMilli(at))
	}
	missed := 0
	for k := range periods {
		at := begin.Add(time.Duration(k) * every).UnixMilli()
		if counts[at] == 0 {
			missed++
			still := late.Within(time.UnixMilli(at).Add(-every), time.UnixMilli(at).Add(2*every))
			assert.Greater(t, still, 100*time.Millisecond, "no run in the period from %v", time.UnixMilli(at))
		} else if before, is := tokens[at-every.Milliseconds()]; is {
			assert.Greater(t, tokens[at], before)
		}
	}
	t.Logf("%d runs in %d periods, %d missed", len(counts), periods, missed)
	assert.LessOrEqual(t, missed, periods/10, "each call of each process took longer than a period")
}

// The nodes keep one record, and no claim.
func TestLeavesNothing(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c)
	p := period.New(q, "report", time.Hour)
	for range 3 {
		_, err := p.Do(t.Context(), func(context.Context) error { return nil })
		require.NoError(t, err)
	}
	e2e.Clean(t, c)
}

// A record of another primitive is not taken for a run.
func TestOtherPrimitive(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q := e2e.Open(t, c)
	require.NoError(t, once.New(q, "o").DoContext(t.Context(), func(context.Context) error { return nil }))
	p := period.New(q, "o", time.Hour)
	_, err := p.Do(t.Context(), func(context.Context) error { t.Error("run"); return nil })
	require.ErrorIs(t, err, quorate.ErrInvalid)
	require.ErrorContains(t, err, "in use by another primitive")
	_, err = p.Last(t.Context())
	require.ErrorIs(t, err, quorate.ErrInvalid)
}
