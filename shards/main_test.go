package shards_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/testkit/worker"
	"github.com/quorate/quorate/shards"
)

// workerEnv makes this test binary a worker, with the nodes that it uses.
const workerEnv = "QUORATE_SHARDS_WORKER"

func TestMain(m *testing.M) {
	var urls []string
	if ok, err := worker.Terms(workerEnv, &urls); ok {
		if err == nil {
			err = serve(urls)
		}
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	e2e.MainWithNodes(m)
}

// count is how many shards the workers share, and lease how long a claim of one
// lasts.
const (
	count = 12
	lease = 2 * time.Second
)

// serve runs shards until its input ends, and says when each begins and ends.
func serve(urls []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	q, err := quorate.Connect(ctx, urls, quorate.WithLogger(nil), quorate.WithTTL(lease))
	if err != nil {
		return err
	}
	defer q.Close()
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString(0) // until the parent closes it
		cancel()
	}()
	var out sync.Mutex
	say := func(what string, shard int, token uint64) {
		out.Lock()
		defer out.Unlock()
		fmt.Println(what, shard, token, time.Now().UnixNano())
	}
	err = shards.New(q, "mailboxes", count).Run(ctx,
		func(ctx context.Context, shard int, l quorate.Lease) error {
			say("begin", shard, l.Token())
			<-ctx.Done()
			say("end", shard, l.Token())
			return nil
		})
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// span is a run of a shard.
type span struct {
	shard      int
	token      uint64
	of         int // which process
	begin, end int64
}

// spans are what the processes say.
type spans struct {
	mu  sync.Mutex
	all map[uint64]*span
}

func (s *spans) take(t *testing.T, of int, line string) {
	var what string
	var x span
	var at int64
	if _, err := fmt.Sscan(line, &what, &x.shard, &x.token, &at); err != nil {
		t.Error(line)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if what == "begin" {
		x.of, x.begin = of, at
		s.all[x.token<<4|uint64(x.shard)] = &x
		return
	}
	s.all[x.token<<4|uint64(x.shard)].end = at
}

// run returns how many shards each process runs now.
func (s *spans) run() (shares map[int]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shares = map[int]int{}
	for _, x := range s.all {
		if x.end == 0 {
			shares[x.of]++
		}
	}
	return shares
}

// killed ends the runs of a process that has been killed.
func (s *spans) killed(of int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.all {
		if x.of == of && x.end == 0 {
			x.end = time.Now().UnixNano()
		}
	}
}

// Processes join, leave and are killed, on three real servers: no shard runs
// twice at a time, none is idle for longer than a lease and a round trip, and
// in the end each process has its fair share.
func TestProcesses(t *testing.T) {
	t.Parallel()
	late := lateness.Measure(t)
	c := redistest.Start(t, 3)
	e2e.Open(t, c, quorate.WithTTL(lease))
	s := spans{all: map[uint64]*span{}}
	var all []*worker.Worker
	start := func() {
		of := len(all)
		cmd, err := worker.Self(workerEnv, c.URLs())
		require.NoError(t, err)
		w, err := worker.Start(cmd, func(line string) { s.take(t, of, line) })
		require.NoError(t, err)
		t.Cleanup(func() { _ = w.Kill() })
		all = append(all, w)
	}
	divided := func(processes ...int) {
		t.Helper()
		began := time.Now()
		var shares map[int]int
		require.True(t, e2e.EventuallyWithin(2*e2e.Patience, func() bool {
			shares = s.run()
			return len(shares) == len(processes) &&
				!slices.ContainsFunc(processes, func(of int) bool { return shares[of] != count/len(processes) })
		}), "%v", &shares)
		t.Logf("divided between %v after %v", processes, time.Since(began).Round(time.Millisecond))
	}
	start()
	divided(0)
	start()
	divided(0, 1)
	start()
	start()
	divided(0, 1, 2, 3)
	require.NoError(t, all[0].End(e2e.Patience))
	divided(1, 2, 3)
	require.NoError(t, all[1].Kill())
	<-all[1].Done()
	s.killed(1)
	divided(2, 3)
	start()
	divided(2, 3, 4)
	for _, w := range all[2:] {
		require.NoError(t, w.End(e2e.Patience))
	}
	idle := s.judge(t)
	assert.Less(t, idle, lease+300*time.Millisecond+late.Allow(12), "a lease and a round trip")
	e2e.Clean(t, c)
}

// judge checks that the runs of each shard are one after the other, in the
// order of their tokens. It returns the longest that a shard was idle.
func (s *spans) judge(t *testing.T) (idle time.Duration) {
	byShard := map[int][]*span{}
	for _, x := range s.all {
		byShard[x.shard] = append(byShard[x.shard], x)
	}
	require.Len(t, byShard, count)
	runs := 0
	for _, all := range byShard {
		slices.SortFunc(all, func(a, b *span) int { return cmp.Compare(a.token, b.token) })
		for i, x := range all {
			runs++
			require.NotZero(t, x.end)
			if i > 0 {
				assert.LessOrEqual(t, all[i-1].end, x.begin,
					strings.TrimSpace(fmt.Sprintln("two at a time:", *all[i-1], *x)))
				idle = max(idle, time.Duration(x.begin-all[i-1].end))
			}
		}
	}
	t.Logf("%d runs of %d shards; the longest that one was idle: %v", runs, count, idle.Round(time.Millisecond))
	return idle
}
