package transport_test

import (
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// hostile is a node that answers some commands of each connection well, and
// from then on sends one text again and again.
func hostile(t *testing.T, good []string, text string) *redis.Options {
	return &redis.Options{Addr: redistest.Serve(t, func(nc net.Conn) {
		rd := resp.NewReader(nc)
		for _, answer := range good {
			if _, err := rd.Read(); err != nil {
				return
			}
			nc.Write([]byte(answer))
		}
		_, err := rd.Read()
		for err == nil {
			_, err = nc.Write([]byte(text))
		}
	})}
}

// A node that lies about a length neither ends the process nor fills its
// memory, in whichever answer of the handshake.
func TestHostileHandshake(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"string of 2^63-1 bytes": "$9223372036854775807\r\n",
		"string of a terabyte":   "$1000000000000\r\n",
		"array of 10^9":          "*1000000000\r\n",
		"array of 2^63-1":        "*9223372036854775807\r\n",
		"map of 10^9":            "%1000000000\r\n",
		"nested arrays":          strings.Repeat("*1\r\n", 4096),
		"nested wide arrays":     strings.Repeat("*999999\r\n", 4096),
		"endless line":           strings.Repeat("x", 4096),
		"endless status":         "+" + strings.Repeat("x", 4096),
		"endless attributes":     strings.Repeat("|1\r\n", 4096),
	} {
		for _, c := range []struct {
			mode string
			good []string
		}{
			{mode: "plain"}, {"questions", slices.Repeat([]string{"+OK\r\n"}, 3)},
			{"probe", slices.Repeat([]string{"+OK\r\n"}, 7)}, {"hello", slices.Repeat([]string{"+OK\r\n"}, 8)},
			{mode: "password"}, {"password", []string{"+OK\r\n"}},
		} {
			t.Run(name+", "+c.mode, func(t *testing.T) {
				o := hostile(t, c.good, text)
				if c.mode == "password" {
					o.Password = "secret"
				}
				client := redis.NewClient(o)
				defer client.Close()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				l := open(t, client, transport.Config{
					Channel: "ch", Stall: 5 * time.Second,
					Probe: func() []transport.Command { return []transport.Command{newCall("GET", "marker")} },
					Hello: func(transport.Info) ([]transport.Command, error) {
						return []transport.Command{newCall("SET", "marker", "x")}, nil
					},
				})
				runtime.ReadMemStats(&after)
				assert.ErrorIs(t, l.State(time.Now()).Err, resp.ErrProtocol)
				assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20))
			})
		}
	}
}
