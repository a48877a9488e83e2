package script_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// longQueue is many claims of one name, to be dealt with by requests that are
// bounded.
type longQueue struct {
	*node
	writer protocol.Terms
	size   uint64
}

// herd has so many readers join, all with the ttl; behind a writer, or not.
func herd(t testing.TB, c redis.UniversalClient, size uint64, ttl time.Duration, behind bool) *longQueue {
	t.Helper()
	require.NoError(t, c.FlushAll(t.Context()).Err())
	h := &longQueue{node: newNode(c), size: size}
	h.writer = h.terms(1<<15, 1<<30)
	h.writer.Weight = 1 << 30
	if behind {
		h.do(t, h.writer, join(640))
	}
	for first := uint64(0); first < size; first += 1000 {
		pipe := c.Pipeline()
		for i := first; i < min(size, first+1000); i++ {
			r := h.terms(i, 1<<30)
			r.TTL, r.Notify = ttl, true
			r.ID[12], r.ID[13] = byte(i>>24), byte(i>>16)
			pipe.Do(t.Context(), h.args(t, r, join(640))...)
		}
		_, err := pipe.Exec(t.Context())
		require.NoError(t, err)
	}
	return h
}

// state is the number of claims that have votes, and of those that wait.
func (h *longQueue) state(t testing.TB) (voted, unvoted int) {
	t.Helper()
	f := strings.Fields(h.c.Get(t.Context(), h.keys.State()).Val())
	if len(f) < 8 || f[0][0] != 'Q' {
		return 0, 0
	}
	voted, _ = strconv.Atoi(f[6])
	unvoted, _ = strconv.Atoi(f[7])
	return voted, unvoted
}

// calls is how many commands a server has executed since its statistics were
// reset, by name.
func calls(t testing.TB, c redis.UniversalClient) map[string]int {
	t.Helper()
	info, err := c.Info(context.Background(), "commandstats").Result()
	require.NoError(t, err)
	n := map[string]int{}
	for line := range strings.Lines(info) {
		name, rest, found := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if found {
			count, _, _ := strings.Cut(rest, ",")
			n[name], err = strconv.Atoi(count)
			require.NoError(t, err)
		}
	}
	return n
}

// bounded does a request and wants it to be as much work as a few claims are,
// however many there are.
func (h *longQueue) bounded(t *testing.T, what string, command []any) {
	t.Helper()
	require.NoError(t, h.c.ConfigResetStat(t.Context()).Err())
	require.NoError(t, h.c.Do(t.Context(), command...).Err(), what)
	n, sum := calls(t, h.c), 0
	for _, count := range n {
		sum += count
	}
	assert.LessOrEqual(t, sum, 6*32, "%s: %v", what, n)
	assert.Zero(t, n["hgetall"], what)
}

// No request does more than a portion of what a thousand claims make necessary,
// and what is left is done by a few more.
func TestNoRequestDealsWithAll(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	const size = 1000
	beat := func(h *longQueue, i uint64) []any {
		return h.args(t, h.terms(i, 1<<30), protocol.Request{Op: protocol.OpBeat})
	}
	leave := protocol.Request{Op: protocol.OpLeave}

	h := herd(t, c, size, time.Minute, true)
	h.bounded(t, "a writer leaves", h.args(t, h.writer, leave))
	for i := range uint64(size / 32) {
		h.bounded(t, "a reader asks", beat(h, i))
	}
	voted, unvoted := h.state(t)
	assert.Equal(t, []int{size, 0}, []int{voted, unvoted})

	h.bounded(t, "a writer comes", h.args(t, h.writer, join(640)))
	h.bounded(t, "a reader is asked for a list",
		h.args(t, h.terms(5, 1<<30), protocol.Request{Op: protocol.OpBeat, List: true}))
	h.bounded(t, "the holder is asked for", args(t, script.AppendInspect(nil, h.keys, 1, 0)))

	h = herd(t, c, size, 300*time.Millisecond, true)
	require.Eventually(t, func() bool {
		at, err := c.Time(t.Context()).Result()
		f := strings.Fields(c.Get(t.Context(), h.keys.State()).Val())
		late, _ := strconv.ParseInt(f[len(f)-3], 10, 64)
		soon, _ := strconv.ParseInt(f[9], 10, 64)
		return err == nil && at.UnixMilli() > soon+300 && late > 0
	}, 20*time.Second, 10*time.Millisecond)
	for range size/32 + 1 {
		h.bounded(t, "the dead are dropped", h.args(t, h.writer, protocol.Request{Op: protocol.OpBeat}))
	}
	voted, unvoted = h.state(t)
	assert.Equal(t, []int{1, 0}, []int{voted, unvoted})
}

// A request that leaves something over has the node ask for another one: of the
// claim that it was for, else of one whose client listens.
func TestTheNodeAsksForMore(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	h := herd(t, c, 200, time.Minute, true)
	pushes := c.Subscribe(t.Context(), "owner")
	defer func() { _ = pushes.Close() }()
	_, err := pushes.Receive(t.Context())
	require.NoError(t, err)
	asked := func(votes int) protocol.Push {
		t.Helper()
		for n := 0; ; n++ {
			m, err := pushes.ReceiveMessage(t.Context())
			require.NoError(t, err)
			p, err := script.ParsePush(m.Payload)
			require.NoError(t, err)
			if p.Ask {
				assert.Equal(t, votes, n)
				return p
			}
		}
	}
	h.do(t, h.writer, protocol.Request{Op: protocol.OpLeave})
	p := asked(32)
	assert.Equal(t, h.terms(32, 1<<30).ID, p.ID, "the first that waits")
	h.do(t, h.terms(150, 1<<30), protocol.Request{Op: protocol.OpBeat})
	assert.Equal(t, h.terms(150, 1<<30).ID, asked(32).ID, "the one that has asked")
	h.do(t, h.terms(150, 1<<30), protocol.Request{Op: protocol.OpBeat})
	assert.Equal(t, h.terms(150, 1<<30).ID, asked(32).ID)
}

// BenchmarkLongQueue reports the most of the processor that a request takes of
// the server, and what most take, in microseconds, where there are very many
// claims.
func BenchmarkLongQueue(b *testing.B) {
	c := redistest.Start(b, 1).Node(0).Client()
	load(b, c)
	for _, size := range []uint64{500, 10_000, 100_000} {
		for _, what := range []string{"leave", "purge", "writer", "list"} {
			b.Run(fmt.Sprintf("%s/%d", what, size), func(b *testing.B) {
				best, usual := math.MaxFloat64, math.MaxFloat64
				for range b.N {
					longest, median := requests(b, c, size, what)
					best, usual = min(best, longest), min(usual, median)
				}
				b.ReportMetric(best, "most-µs")
				b.ReportMetric(usual, "median-µs")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// requests tells of those that it takes how long the server was busy with them.
func requests(b *testing.B, c redis.UniversalClient, size uint64, what string) (longest, median float64) {
	b.Helper()
	ttl := time.Hour
	if what == "purge" {
		ttl = time.Duration(size) * 500 * time.Microsecond
	}
	h := herd(b, c, size, ttl, what != "writer" && what != "list")
	if what == "purge" {
		time.Sleep(ttl) // they are dead then
	}
	var took []float64
	send := func(t protocol.Terms, r protocol.Request, times int) {
		for range times {
			pipe := c.Pipeline()
			before := pipe.Info(b.Context(), "cpu")
			pipe.Do(b.Context(), h.args(b, t, r)...)
			after := pipe.Info(b.Context(), "cpu")
			_, err := pipe.Exec(b.Context())
			require.NoError(b, err)
			took = append(took, processor(b, after.Val())-processor(b, before.Val()))
		}
	}
	all := min(int(size/32)+2, 500)
	switch what {
	case "leave":
		send(h.writer, protocol.Request{Op: protocol.OpLeave}, all)
	case "purge":
		send(h.writer, protocol.Request{Op: protocol.OpBeat}, all)
	case "writer":
		send(h.writer, join(640), all)
	case "list":
		send(h.terms(size-1, 1<<30), protocol.Request{Op: protocol.OpBeat, List: true}, 1)
	}
	slices.Sort(took)
	return took[len(took)-1], took[len(took)/2]
}

// processor is how much of the processor's time a server has taken, in
// microseconds.
func processor(t testing.TB, info string) float64 {
	t.Helper()
	sum := 0.0
	for _, name := range []string{"used_cpu_user_main_thread:", "used_cpu_sys_main_thread:"} {
		_, rest, found := strings.Cut(info, name)
		require.True(t, found)
		rest, _, _ = strings.Cut(rest, "\r")
		v, err := strconv.ParseFloat(rest, 64)
		require.NoError(t, err)
		sum += v * 1e6
	}
	return sum
}
