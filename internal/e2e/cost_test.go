package e2e_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/semaphore"
)

// TestCostWithManyPermitsInUse holds a semaphore to its promise: with 1,000
// permits in use, each by a claim of its own, an Acquire costs at most twice
// the bytes and 1.5 times the node's time of one with 10 in use.
//
// Both are the servers' own account. The two take turns, and of the times the
// least counts, for whatever else runs here only adds to them.
func TestCostWithManyPermitsInUse(t *testing.T) {
	t.Parallel()
	const rounds, patience = 5, 60
	inUse := [2]int{10, 1000}
	c := redistest.Start(t, 3)
	// Leases so long that no holder renews its own meanwhile.
	q := e2e.Open(t, c, e2e.Timing(10*time.Minute))
	var users [2]*semaphore.Weighted
	for i, n := range inUse {
		name := fmt.Sprintf("%d in use", n)
		holders := semaphore.NewWeighted(q, name, 2000)
		for range n {
			require.NoError(t, holders.Acquire(t.Context(), 1))
		}
		users[i] = semaphore.NewWeighted(q, name, 2000)
	}
	servers := meter{c: c}
	var bytes [2]float64
	usec := [2]float64{math.Inf(1), math.Inf(1)}
	for round := 0; round < rounds || round < patience && usec[1] > 1.5*usec[0]; round++ {
		for i, s := range users {
			one := servers.cost(t, s)
			bytes[i], usec[i] = max(bytes[i], one.bytes), min(usec[i], one.usec)
		}
	}
	for i, n := range inUse {
		t.Logf("%d in use: an Acquire and its Release cost a node %.0f bytes and %.1f µs", n, bytes[i], usec[i])
	}
	require.LessOrEqual(t, bytes[1], 2*bytes[0])
	require.LessOrEqual(t, usec[1], 1.5*usec[0])
}

// TestCostOfManyWaiters is the same for 16 users on four Quorums that come and
// go all the time, with room for just them: the nodes never all say the same,
// so only lists can show that there is room, and the lists must not be of all.
func TestCostOfManyWaiters(t *testing.T) {
	t.Parallel()
	const rounds, patience, users = 3, 20, 16
	inUse := [2]int{10, 1000}
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(10*time.Minute))
	var waiters [2][]*semaphore.Weighted
	for _, n := range inUse {
		holders := semaphore.NewWeighted(q, fmt.Sprintf("%d in use", n), int64(n+users))
		for range n {
			require.NoError(t, holders.Acquire(t.Context(), 1))
		}
	}
	time.Sleep(1100 * time.Millisecond) // lists go back for a second
	for range users / 4 {
		q := e2e.Open(t, c, e2e.Timing(10*time.Minute))
		for i, n := range inUse {
			waiters[i] = append(waiters[i], semaphore.NewWeighted(q, fmt.Sprintf("%d in use", n), int64(n+users)))
		}
	}
	servers := meter{c: c}
	var bytes [2]float64
	usec := [2]float64{math.Inf(1), math.Inf(1)}
	for round := 0; round < rounds || round < patience && usec[1] > 1.5*usec[0]; round++ {
		for i := range inUse {
			one := servers.waiters(t, waiters[i], users)
			bytes[i], usec[i] = max(bytes[i], one.bytes), min(usec[i], one.usec)
		}
	}
	for i, n := range inUse {
		t.Logf("%d in use: an Acquire and its Release among many claims cost a node %.0f bytes and %.1f µs", n,
			bytes[i], usec[i])
	}
	require.LessOrEqual(t, bytes[1], 2*bytes[0])
	require.LessOrEqual(t, usec[1], 1.5*usec[0])
}

// waiters is the cost of an Acquire and its Release while others do the same.
func (m *meter) waiters(t *testing.T, all []*semaphore.Weighted, users int) account {
	t.Helper()
	const times = 30
	before := m.read(t)
	var wg sync.WaitGroup
	for i := range users {
		wg.Go(func() {
			for range times {
				if err := all[i%len(all)].Acquire(t.Context(), 1); err != nil {
					t.Error(err)
					return
				}
				all[i%len(all)].Release(1)
			}
		})
	}
	wg.Wait()
	after := m.read(t)
	n := float64(times * users * m.c.Len())
	return account{(after.calls - before.calls) / n, (after.usec - before.usec) / n,
		(after.bytes - before.bytes) / n}
}

// meter reads the accounts that servers keep.
type meter struct {
	c   *redistest.Cluster
	own float64 // bytes that the reading itself took
}

// account is what servers have done: scripts run, their time in microseconds,
// and bytes on the wire, both ways, pushes included.
type account struct{ calls, usec, bytes float64 }

// cost is what an Acquire and its Release, together, cost one server, on
// average over many.
func (m *meter) cost(t *testing.T, s *semaphore.Weighted) account {
	t.Helper()
	const times = 100
	all := float64(times * m.c.Len())
	before := m.read(t)
	for range times {
		require.NoError(t, s.Acquire(t.Context(), 1))
		s.Release(1)
	}
	var after account
	require.True(t, e2e.Eventually(func() bool {
		after = m.read(t)
		return after.calls-before.calls >= 2*all
	}), "every server hears of each Acquire and of each Release")
	calls := after.calls - before.calls
	require.LessOrEqual(t, calls, 2.02*all, "once, as far as can be")
	return account{calls / all, (after.usec - before.usec) / all, (after.bytes - before.bytes) / all}
}

var (
	scripts = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+),usec=(\d+)`)
	input   = regexp.MustCompile(`total_net_input_bytes:(\d+)`)
	output  = regexp.MustCompile(`total_net_output_bytes:(\d+)`)
)

// read adds the accounts of all servers up.
func (m *meter) read(t *testing.T) (a account) {
	t.Helper()
	a.bytes = -m.own
	for i := range m.c.Len() {
		info, err := m.c.Node(i).Client().Info(t.Context(), "stats", "commandstats").Result()
		require.NoError(t, err)
		number := func(of *regexp.Regexp, group int) float64 {
			found := of.FindStringSubmatch(info)
			require.NotNil(t, found, "%v in %s", of, info)
			n, err := strconv.ParseFloat(found[group], 64)
			require.NoError(t, err)
			return n
		}
		a.calls += number(scripts, 1)
		a.usec += number(scripts, 2)
		a.bytes += number(input, 1) + number(output, 1)
		// Command and reply as they are on the wire. A server counts what it
		// has sent, so this reply will be in its next account.
		m.own += float64(len("*3\r\n$4\r\ninfo\r\n$5\r\nstats\r\n$12\r\ncommandstats\r\n") + len("$1234\r\n\r\n") +
			len(info))
	}
	return a
}
