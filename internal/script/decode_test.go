package script_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// T0 is taken from this clock: clients that contend on one machine would
// propose each below the other's if it were cut to milliseconds.
func TestClockOfAShortAnswer(t *testing.T) {
	a, err := script.Decode([]resp.Value{{Str: []byte("1700000000 123456 7 640 1")}})
	require.NoError(t, err)
	assert.Equal(t, int64(1_700_000_000_123_456), a.Clock)
	a, err = script.Decode([]resp.Value{{Int: 1_700_000_000_123*8 + 1}, {Int: 7}, {Int: 640}, {Int: 1}})
	require.NoError(t, err)
	assert.Equal(t, int64(1_700_000_000_123_000), a.Clock)
}

func TestDecodeRefuses(t *testing.T) {
	i := func(v ...int64) (r []resp.Value) {
		for _, x := range v {
			r = append(r, resp.Value{Int: x})
		}
		return r
	}
	for name, v := range map[string][]resp.Value{
		"nothing":              nil,
		"short":                i(1, 7),
		"unknown status":       i(5, 7, 640),
		"clock past 2^43":      i(8<<43+9, 7, 640, 1),
		"status 0":             i(0, 7, 640),
		"status as text":       {{Str: []byte("1")}, {Int: 7}, {Int: 640}, {}},
		"no incarnation":       i(1, 0, 640, 1),
		"negative ticket":      i(1, 7, -1, 1),
		"ticket past 2^53":     i(1, 7, 1<<53, 1),
		"vote without ticket":  i(1, 7, 0, 1),
		"unknown flag":         i(1, 7, 640, 32),
		"vote and foreign":     i(1, 7, 640, 5),
		"listed, no totals":    i(1, 7, 640, 16),
		"long wait":            i(1, 7, 640, 0, 1<<50),
		"sum without digest":   i(1, 7, 640, 9, 0, 1),
		"totals, not flagged":  i(1, 7, 640, 1, 0, 1, 2),
		"digest past 2^52":     i(1, 7, 640, 9, 0, 1, 1<<52),
		"list, not listed":     i(1, 7, 640, 9, 0, 1, 2, 3, 4),
		"lower id is a number": i(1, 7, 640, 25, 0, 1, 2, 1, 2, 3, 4),
		"no totals of all":     i(1, 7, 640, 25, 0, 1, 2),
		"all past 2^53":        i(1, 7, 640, 25, 0, 1, 2, 1<<53, 2),
		"all below the sum":    i(1, 7, 640, 25, 0, 3, 2, 2, 2),
		"endless recovery":     i(3, 7, 1<<50),
		"capacity 0":           i(4, 7, 0),
		"long missing":         i(2, 7, 640, 1),
	} {
		_, err := script.Decode(v)
		assert.ErrorIs(t, err, script.ErrAnswer, name)
	}
}

func TestParsePushRefuses(t *testing.T) {
	id := strings.Repeat("0a", 16)
	for _, s := range []string{
		"", "v", "w 7 " + id + " 640", "w 8796093022209 7 " + id + " 640", "x 9 7 " + id + " 640", "w 9 7 " + id,
		"w 9 7 " + id + " 640 1", "w 9 0 " + id + " 640", "w 9 7 " + id + " 0",
		"w 9 7 " + id[1:] + " 640", "w 9 -7 " + id + " 640", "w 9 7 " + id + " 9007199254740992",
		"v 9 7 " + id + " 640 2 0 0", "v 9 7 " + id + " 640 1 0", "v 9 7 " + id + " 640 1 0 0 0",
		"v 9 7 " + id + " 640 1 0 4503599627370496",
		"v 9 7 " + id + "  640 1 0 0", "v 9 07 " + id + " 640 1 0 0",
	} {
		_, err := script.ParsePush(s)
		assert.ErrorIs(t, err, script.ErrAnswer, s)
	}
}

func TestEncodingAllocatesNothing(t *testing.T) {
	k := script.NewKeys("quorate", "some name")
	terms := protocol.Terms{ID: protocol.ID{1}, Weight: 1, Capacity: 1, TTL: 8 * time.Second}
	buf := make([]byte, 0, 1024)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		buf = script.AppendCommand(buf[:0], k, &terms, "owner", time.Second, time.Minute, join(1<<51))
	}))
}
