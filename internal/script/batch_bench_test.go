package script_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// BenchmarkBatch reports what one name costs the server of those in one
// request.
func BenchmarkBatch(b *testing.B) {
	c := redistest.Start(b, 1).Node(0).Client()
	load(b, c)
	n := newNode(c)
	const names, owner = 64, "quorate:push:a-host:12345:ABCDEFGHIJKL"
	ticket := protocol.Ticket(1 << 50)
	for _, parts := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("parts=%d", parts), func(b *testing.B) {
			spent := [3]float64{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64}
			for range b.N {
				ticket += 64
				for i, op := range []protocol.Op{protocol.OpJoin, protocol.OpBeat, protocol.OpLeave} {
					require.NoError(b, c.ConfigResetStat(b.Context()).Err())
					pipe := c.Pipeline()
					for first := 0; first < names; first += parts {
						var keys, as []byte
						nKeys, nArgs := 0, 0
						for j := first; j < first+parts; j++ {
							t := protocol.Terms{Weight: 1, Capacity: 1, TTL: 20 * time.Second}
							t.ID[1], t.ID[15] = byte(j), byte(ticket>>6)
							var k, a int
							keys, as, k, a = script.AppendItem(keys, as, script.NewKeys("test",
								"bench name "+strconv.Itoa(j)).At(home), &t, protocol.Request{Op: op, Ticket: ticket})
							nKeys, nArgs = nKeys+k, nArgs+a
						}
						pipe.Do(b.Context(),
							args(b, script.AppendBatch(nil, n.keys.Marker(), 0, time.Minute, owner,
								script.Kind(&protocol.Terms{TTL: 20 * time.Second}, protocol.Request{Op: op}), keys, as,
								nKeys, nArgs))...)
					}
					all, err := pipe.Exec(b.Context())
					require.NoError(b, err)
					require.NotContains(b, fmt.Sprint(all[0].(*redis.Cmd).Val()), " 0", "it was done")
					spent[i] = min(spent[i], evalsha(b, c)/float64(parts))
				}
			}
			for i, op := range []string{"join", "beat", "leave"} {
				b.ReportMetric(spent[i], op+"-µs")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
