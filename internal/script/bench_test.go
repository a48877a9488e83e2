package script_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// BenchmarkServer reports what a request costs the server itself, its own count
// of the time in EVALSHA: the processor of a node is what a busy fleet runs out
// of. The best of many batches, for whatever else runs here only adds to it.
func BenchmarkServer(b *testing.B) {
	c := redistest.Start(b, 1).Node(0).Client()
	load(b, c)
	for _, claims := range []int{1, 10, 1000} {
		for _, capacity := range []uint64{1, 1 << 30} {
			if claims == 1 && capacity > 1 {
				continue
			}
			n := newNode(c)
			for i := range claims - 1 {
				n.do(b, n.terms(uint64(i+2), capacity), protocol.Request{Op: protocol.OpJoin, Ticket: 1000})
			}
			mine := n.terms(1, capacity)
			b.Run(fmt.Sprintf("claims=%d/capacity=%d", claims, capacity), func(b *testing.B) {
				spent := [3]float64{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64}
				ticket := protocol.Ticket(1 << 50)
				for range b.N {
					ticket += protocol.Residues // above the fence, as they are
					for i, op := range []protocol.Op{protocol.OpJoin, protocol.OpBeat, protocol.OpLeave} {
						const batch = 100
						require.NoError(b, c.ConfigResetStat(b.Context()).Err())
						pipe := c.Pipeline()
						for j := range batch {
							t := mine
							if op != protocol.OpBeat {
								// Each on a name of its own, or the second join
								// would be a beat.
								t.ID[1] = byte(j)
								if claims == 1 {
									n.keys = script.NewKeys("test", "name "+strconv.Itoa(j)).At(home)
								}
							}
							pipe.Do(b.Context(),
								n.args(b, t, protocol.Request{Op: op, Ticket: ticket, Patient: op == protocol.OpBeat})...)
						}
						_, err := pipe.Exec(b.Context())
						require.NoError(b, err)
						spent[i] = min(spent[i], evalsha(b, c))
					}
				}
				for i, op := range []string{"join", "beat", "leave"} {
					b.ReportMetric(spent[i], op+"-µs")
				}
				b.ReportMetric(0, "ns/op")
			})
			require.NoError(b, c.FlushAll(b.Context()).Err())
		}
	}
}

// BenchmarkHandOver reports what it costs the server that the first claim of a
// queue leaves, and that another one comes and waits.
func BenchmarkHandOver(b *testing.B) {
	c := redistest.Start(b, 1).Node(0).Client()
	load(b, c)
	const queued, batch = 10, 50
	for _, permits := range []uint64{1, 5} {
		b.Run(fmt.Sprintf("permits=%d", permits), func(b *testing.B) {
			require.NoError(b, c.FlushAll(b.Context()).Err())
			n := newNode(c)
			var first, last uint64
			one := func(i *uint64, r protocol.Request) []any {
				t := n.terms(*i, permits)
				t.Counting = permits > 1
				*i++
				r.Ticket = t.ID.Next(1<<50 + protocol.Ticket(last)*100) // with as many digits as they have
				return args(b, script.AppendCommand(nil, n.keys, &t,
					"quorate:push:a-host:12345:ABCDEFGHIJKL", 0, time.Minute, r))
			}
			for range queued {
				require.NoError(b, c.Do(b.Context(), one(&last, protocol.Request{Op: protocol.OpJoin})...).Err())
			}
			spent := func(i *uint64, op protocol.Op) float64 {
				require.NoError(b, c.ConfigResetStat(b.Context()).Err())
				pipe := c.Pipeline()
				for range batch {
					pipe.Do(b.Context(), one(i, protocol.Request{Op: op})...)
				}
				_, err := pipe.Exec(b.Context())
				require.NoError(b, err)
				return evalsha(b, c)
			}
			join, leave := math.MaxFloat64, math.MaxFloat64
			for range b.N {
				join = min(join, spent(&last, protocol.OpJoin))
				leave = min(leave, spent(&first, protocol.OpLeave))
			}
			b.ReportMetric(join, "join-µs")
			b.ReportMetric(leave, "leave-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func BenchmarkAppendCommand(b *testing.B) {
	k := script.NewKeys("quorate", "some name")
	t := protocol.Terms{ID: protocol.ID{1}, Weight: 1, Capacity: 1, TTL: 8 * time.Second}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = script.AppendCommand(buf[:0], k, &t, "owner", time.Second, time.Minute,
			protocol.Request{Op: protocol.OpJoin, Ticket: 1 << 51})
	}
}

func BenchmarkDecode(b *testing.B) {
	v := []resp.Value{{Int: 1}, {Int: 1 << 50}, {Int: 1 << 51}, {Int: 9}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := script.Decode(v); err != nil {
			b.Fatal(err)
		}
	}
}

// node is one name on one server, without a model alongside it.
type node struct {
	c    redis.UniversalClient
	keys script.Keys

	guard, retention time.Duration
	note             string // of each claim, with a space before it
}

// home is that of the configuration that the nodes of these tests serve.
var home = script.HomeOf("1.home")

// newNode returns a node that serves its configuration, and votes.
func newNode(c redis.UniversalClient) *node {
	n := &node{c: c, keys: script.NewKeys("test", "a name").At(home), retention: time.Minute}
	n.serve()
	return n
}

// serve gives the node its marker if it has none.
func (n *node) serve() { n.c.SetNX(context.Background(), n.keys.Marker(), "7 0 run 0", 0) }

func (n *node) terms(id, capacity uint64) protocol.Terms {
	t := protocol.Terms{Weight: 1, Capacity: capacity, TTL: 20 * time.Second}
	t.ID[0], t.ID[14], t.ID[15] = byte(id), byte(id>>8), byte(id)
	return t
}

func (n *node) args(t testing.TB, terms protocol.Terms, r protocol.Request) []any {
	t.Helper()
	return args(t, script.AppendCommand(nil, n.keys, &terms, "owner"+n.note, n.guard, n.retention, r))
}

func (n *node) send(t testing.TB, terms protocol.Terms, r protocol.Request) ([]any, error) {
	t.Helper()
	reply, err := n.c.Do(context.Background(), n.args(t, terms, r)...).Result()
	if list, ok := reply.([]any); ok {
		return list, err
	}
	return []any{reply}, err
}

func (n *node) do(t testing.TB, terms protocol.Terms, r protocol.Request) protocol.Answer {
	t.Helper()
	reply, err := n.send(t, terms, r)
	require.NoError(t, err)
	decode := script.Decode
	if r.Op == protocol.OpLeave {
		decode = script.DecodeLeave
	}
	a, err := decode(values(t, reply))
	require.NoError(t, err)
	return a
}

func load(t testing.TB, c redis.UniversalClient) {
	t.Helper()
	for _, s := range script.All() {
		sha, err := c.Do(context.Background(), args(t, script.AppendLoad(nil, s))...).Text()
		require.NoError(t, err)
		require.Equal(t, s.SHA, sha)
	}
}

func args(t testing.TB, command []byte) []any {
	t.Helper()
	v, err := resp.NewReader(strings.NewReader(string(command))).Read()
	require.NoError(t, err)
	a := make([]any, len(v))
	for i := range v {
		a[i] = string(v[i].Str)
	}
	return a
}

func values(t testing.TB, reply []any) []resp.Value {
	t.Helper()
	v := make([]resp.Value, len(reply))
	for i, x := range reply {
		switch x := x.(type) {
		case int64:
			v[i].Int = x
		case string:
			v[i].Str = []byte(x)
		default:
			t.Fatalf("a %T in a reply", x)
		}
	}
	return v
}

// evalsha is the server's time per EVALSHA since its statistics were reset, in
// microseconds.
func evalsha(t testing.TB, c redis.UniversalClient) float64 {
	t.Helper()
	info, err := c.Info(context.Background(), "commandstats").Result()
	require.NoError(t, err)
	_, rest, found := strings.Cut(info, "cmdstat_evalsha:")
	require.True(t, found)
	_, rest, _ = strings.Cut(rest, "usec_per_call=")
	rest, _, _ = strings.Cut(rest, ",")
	v, err := strconv.ParseFloat(rest, 64)
	require.NoError(t, err)
	return v
}
