package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// rawLog keeps the lines of a log as they are given to its handler: no handler has
// quoted anything yet.
type rawLog struct {
	mu    sync.Mutex
	lines []string
}

func (s *rawLog) Enabled(context.Context, slog.Level) bool { return true }
func (s *rawLog) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s *rawLog) WithGroup(string) slog.Handler            { return s }

func (s *rawLog) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.Key + "=" + a.Value.String(); return true })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
	return nil
}

func (s *rawLog) of(text string) (found []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		if strings.Contains(l, text) {
			found = append(found, l)
		}
	}
	return found
}

// A node cannot forge lines of the log, nor fill it: what it says comes as one
// line of a bounded length.
func TestForgedTextsInTheLog(t *testing.T) {
	t.Parallel()
	const name = "a name\x1b[31m\nERROR own"
	for what, forged := range map[string]string{
		"a new line": "x\ty\x1b[31m\nERROR forged", "an escape": "x\ty\x1b[31m ERROR forged",
		"much": strings.Repeat("z", 12_000),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var log rawLog
			var forges atomic.Bool
			c := redistest.Start(t, 3)
			bad := "redis://" + redistest.Between(t, c.Node(0).Addr(), func(words []string) string {
				switch command := strings.ToUpper(words[0]); {
				case !forges.Load():
				case command == "EVALSHA":
					return "-ERR " + forged + "\r\n"
				case command == "INFO" && len(words) > 1 && words[1] == "server":
					text := "redis_version:7.0.0" + strings.ReplaceAll(forged, "\n", "") + "\r\nrun_id:" +
						strings.ReplaceAll(forged, "\n", "") + "\r\n"
					return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
				}
				return ""
			})
			q := e2e.OpenAt(t, append(c.URLs()[1:], bad), e2e.Timing(time.Second), quorate.WithLogger(slog.New(&log)))
			require.True(t, e2e.Eventually(func() bool { return q.Bootstrap(t.Context()) == nil }))
			forges.Store(true)
			m := mutex.New(q, name, quorate.WithoutRenewal())
			require.NoError(t, m.LockContext(deadline(t)))
			<-m.Lease().Context().Done() // its loss tells what the node has said
			require.NoError(t, c.Node(0).Client().Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err())
			require.True(t, e2e.Eventually(func() bool { return len(log.of("a hold was lost")) > 0 }), "%.3000q",
				&log.lines)
			_ = q.Close() // the node acknowledges no release
			quoted := map[string]string{"a new line": `x\ty\x1b[31m\n`,
				"an escape": "ERROR forged", "much": "zzz"}[what]
			require.NotEmpty(t, log.of(quoted), "%.6000q", log.of("error="))
			for _, line := range log.of("") {
				assert.Less(t, len(line), 8<<10, "%.200q", line)
				line = strings.ReplaceAll(line, name, "") // which is the program's own
				assert.Negative(t, strings.IndexFunc(line, unicode.IsControl), "%.500q", line)
			}
		})
	}
}
