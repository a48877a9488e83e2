package report

// The handlers between the library and the application's: one that runs it in a
// goroutine of its own, and one that drops lines that only repeat another one.

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
)

// LogKey returns a text by which a caller that keeps failing decides whether to
// log f: only if the key differs from that of the failure it logged last. The key
// has each node's address and error, without what differs from one try to the
// next. So "10.0.0.1:40012->10.0.0.2:6379: connection refused" is logged once,
// although the next try comes from port 40013. The text is not for people.
func LogKey(f *fault.Failure) string {
	var b strings.Builder
	for _, n := range f.Nodes {
		fmt.Fprintf(&b, "%s %s\n", n.Addr, stripVolatile(n.Err.Error()))
	}
	return b.String()
}

// stripVolatile removes from text what differs between attempts to connect: the
// local address, as in "10.0.0.1:40012->10.0.0.2:6379", and the time of day in
// a certificate error.
func stripVolatile(text string) string { return volatile.ReplaceAllString(text, "") }

var volatile = regexp.MustCompile(`[^ ]*->|current time [^ ]+`)

// repeatAfter is how long a repeated line is suppressed.
const repeatAfter = 10 * time.Second

// RecentLines remembers the lines that the buckets logged lately. The zero
// value is ready for use. It is safe for concurrent use; mu guards when.
type RecentLines struct {
	mu   sync.Mutex
	when map[string]time.Time
}

// isNew reports whether line was not logged within repeatAfter, and records it.
func (s *RecentLines) isNew(line string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, had := s.when[line]; had && now.Sub(at) < repeatAfter {
		return false
	}
	if s.when == nil {
		s.when = map[string]time.Time{}
	}
	for old, at := range s.when {
		if now.Sub(at) >= repeatAfter {
			delete(s.when, old)
		}
	}
	s.when[line] = now
	return true
}

// dedupHandler is the log handler of one bucket. It drops a line if another
// bucket has just logged the same one. Lines are the same even if they differ
// in the bucket, the port of a connection or a duration.
type dedupHandler struct {
	slog.Handler
	recent *RecentLines
}

// Deduplicate returns a handler that passes to log only lines that are not in
// s.
func Deduplicate(log slog.Handler, s *RecentLines) slog.Handler { return dedupHandler{log, s} }

func (o dedupHandler) Handle(ctx context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if a.Value.Kind() != slog.KindDuration {
			line.WriteString("\n" + a.Key + "=" + stripVolatile(a.Value.String()))
		}
		return true
	})
	if !o.recent.isNew(line.String(), r.Time) {
		return nil
	}
	return o.Handler.Handle(ctx, r)
}

// Isolate returns a handler that runs h in another goroutine, and waits for it.
// A handler may end the goroutine that it runs in, as t.FailNow does. If that
// were one of the library's goroutines, its node would stay dead or a call would
// never return. A panic in h still ends the process.
func Isolate(h slog.Handler) slog.Handler { return isolatedHandler{h} }

type isolatedHandler struct{ slog.Handler }

func (i isolatedHandler) Enabled(ctx context.Context, level slog.Level) (on bool) {
	isolate(func() { on = i.Handler.Enabled(ctx, level) })
	return on
}

func (i isolatedHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	isolate(func() { err = i.Handler.Handle(ctx, r) })
	return err
}

// isolate runs f in another goroutine, and waits for it.
func isolate(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (i isolatedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return isolatedHandler{i.Handler.WithAttrs(attrs)}
}

func (i isolatedHandler) WithGroup(name string) slog.Handler {
	return isolatedHandler{i.Handler.WithGroup(name)}
}
