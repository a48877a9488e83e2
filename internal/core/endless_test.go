package core

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/resp"
)

// A node whose cursor never returns to 0 neither fills the memory nor keeps the
// client busy, whether it lists names or none.
func TestEndlessList(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1000, 0} {
		scans := 0
		var names []byte
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		var all sync.WaitGroup
		all.Go(func() {
			for {
				nc, err := ln.Accept()
				if err != nil {
					return
				}
				all.Go(func() {
					defer nc.Close()
					for rd := resp.NewReader(nc); ; {
						v, err := rd.Read()
						if err != nil {
							return
						}
						answer := []byte("+OK\r\n")
						switch line := text(v, 0) + " " + text(v, 1); {
						case line == "INFO server":
							answer = []byte("$12\r\nrun_id:run\r\n\r\n")
						case line == "GET quorate:marker":
							answer = []byte("$28\r\n7 1000 run 20000 300000     \r\n")
						case line == "TIME ":
							answer = resp.AppendCommand(nil, fmt.Sprint(time.Now().Unix()), "0")
						case strings.HasPrefix(line, "SCAN"):
							scans++
							names = append(names[:0], "*2\r\n$1\r\n7\r\n"...)
							names = resp.AppendArray(names, count)
							for i := range count {
								names = resp.AppendString(names, fmt.Sprintf("quorate:{%d-%d%s}:r", scans, i, strings.Repeat("x", 900)))
							}
							answer = names
						}
						if _, err := nc.Write(answer); err != nil {
							return
						}
					}
				})
			}
		})
		t.Cleanup(func() { _ = ln.Close(); all.Wait() })
		client := redis.NewClient(&redis.Options{Addr: ln.Addr().String()})
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
