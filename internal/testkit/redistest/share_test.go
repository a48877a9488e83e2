package redistest_test

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// runs is a testing.M of its own.
type runs func()

func (f runs) Run() int { f(); return 0 }

// A test gets the server that the one before has given back, and nothing that
// it has left there. It gets another one where the one before did what cannot
// be undone.
func TestShare(t *testing.T) {
	const script = "return 1"
	var ends []net.Conn
	with := func(client func(*testing.T, *redis.Client)) func(*testing.T, *redistest.Server) {
		return func(t *testing.T, s *redistest.Server) { client(t, s.Client()) }
	}
	steps := []struct {
		name   string
		f      func(*testing.T, *redistest.Server)
		shared bool // the next one gets the same server
	}{
		{"leaves data, a script and connections", with(func(t *testing.T, c *redis.Client) {
			require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
			require.NoError(t, c.ScriptLoad(t.Context(), script).Err())
			for _, command := range []string{"PING\r\n", "SUBSCRIBE channel\r\n"} {
				conn, err := net.Dial("tcp", c.Options().Addr)
				require.NoError(t, err)
				ends = append(ends, conn)
				_, err = conn.Write([]byte(command))
				require.NoError(t, err)
				_, err = conn.Read(make([]byte, 1))
				require.NoError(t, err)
			}
		}), true},
		{"finds nothing", with(func(t *testing.T, c *redis.Client) {
			assert.Zero(t, c.DBSize(t.Context()).Val())
			assert.Equal(t, []bool{false}, c.ScriptExists(t.Context(), redis.NewScript(script).Hash()).Val())
			assert.NotContains(t, c.Info(t.Context(), "commandstats").Val(), "cmdstat_set:")
			for _, conn := range ends {
				_, err := io.Copy(io.Discard, conn)
				assert.NoError(t, err, "it has ended")
				assert.NoError(t, conn.Close())
			}
		}), true},
		{"sets the server up", with(func(t *testing.T, c *redis.Client) {
			require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "4mb").Err())
		}), false},
		{"sets it up, and hides that", with(func(t *testing.T, c *redis.Client) {
			require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "4mb").Err())
			require.NoError(t, c.ConfigResetStat(t.Context()).Err())
		}), false},
		{"does nothing", func(*testing.T, *redistest.Server) {}, true},
		{"hides it on a server that was given back", with(func(t *testing.T, c *redis.Client) {
			require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "4mb").Err())
			require.NoError(t, c.ConfigResetStat(t.Context()).Err())
			require.NoError(t, c.ConfigResetStat(t.Context()).Err())
		}), false},
		{"restarts it", func(t *testing.T, s *redistest.Server) {
			require.NoError(t, s.Stop())
			require.NoError(t, s.Restart())
		}, true},
		{"leaves a file", func(t *testing.T, s *redistest.Server) {
			require.NoError(t, s.Client().Save(t.Context()).Err())
			require.NoError(t, s.Restart())
		}, false},
		{"lets it go on", func(t *testing.T, s *redistest.Server) {
			require.NoError(t, s.Stop())
			require.NoError(t, s.Cont())
		}, true},
		{"kills it", func(t *testing.T, s *redistest.Server) { require.NoError(t, s.Kill()) }, false},
		{"stops it", func(t *testing.T, s *redistest.Server) { require.NoError(t, s.Stop()) }, false},
		{"is the last", func(*testing.T, *redistest.Server) {}, true},
	}
	pid := func(t *testing.T, s *redistest.Server) string {
		return s.Client().InfoMap(t.Context(), "server").Item("Server", "process_id")
	}
	last, addr := "", ""
	redistest.Share(runs(func() {
		for i, step := range steps {
			t.Run(step.name, func(t *testing.T) {
				s := redistest.Start(t, 1).Node(0)
				is := pid(t, s)
				if i > 0 {
					assert.Equal(t, steps[i-1].shared, is == last, "the server of the one before")
				}
				last = is
				step.f(t, s)
				if step.shared {
					last, addr = pid(t, s), s.Addr()
				}
			})
		}
	})).Run()
	_, err := net.DialTimeout("tcp", addr, time.Second)
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
}
