package core

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A node whose cursor never returns to 0 neither fills the memory nor keeps the
// client busy, whether it lists names or none.
func TestEndlessList(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1000, 0} {
		scans := 0
		var names []byte
		addr := redistest.Answer(t, func(words []string) string {
			switch line := strings.Join(words, " "); {
			case line == "INFO server":
				return "$12\r\nrun_id:run\r\n\r\n"
			case line == "GET quorate:marker":
				return "$28\r\n7 1000 run 20000 300000     \r\n"
			case line == "TIME":
				return string(resp.AppendCommand(nil, fmt.Sprint(time.Now().Unix()), "0"))
			case strings.HasPrefix(line, "SCAN"):
				scans++
				names = append(names[:0], "*2\r\n$1\r\n7\r\n"...)
				names = resp.AppendArray(names, count)
				for i := range count {
					names = resp.AppendString(names, fmt.Sprintf("quorate:{%d-%d%s}:r", scans, i, strings.Repeat("x", 900)))
				}
				return string(names)
			}
			return "+OK\r\n"
		})
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		q, err := New([]redis.UniversalClient{client}, Defaults())
		require.NoError(t, err)
		defer func() { _ = q.Close(t.Context()) }()
		require.NoError(t, q.Ready(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		found := map[string]bool{}
		_, err = q.list(ctx, q.nodes[0], found, func() error { return nil })
		assert.ErrorIs(t, err, errEndless)
		assert.LessOrEqual(t, len(found), 200_000)
	}
}
