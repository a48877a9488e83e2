package report

// This file owns which lines of the log say what another one has said.

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

// Gist is what a change of is news.
func Gist(f *fault.Failure) string {
	var b strings.Builder
	for _, n := range f.Nodes {
		fmt.Fprintf(&b, "%s %s\n", n.Addr, far(n.Err.Error()))
	}
	return b.String()
}

// far is a text without what each attempt to connect has of its own: the near
// end, as in "10.0.0.1:40012->10.0.0.2:6379", and the time of day by which a
// certificate was judged.
func far(text string) string { return passing.ReplaceAllString(text, "") }

var passing = regexp.MustCompile(`[^ ]*->|current time [^ ]+`)

// sameFor is how long a line that says the same is left out.
const sameFor = 10 * time.Second

// Spoken are lines that the buckets have logged. It is safe for concurrent use,
// and ready for use as it is; mu guards it.
type Spoken struct {
	mu   sync.Mutex
	when map[string]time.Time
}

// first reports whether a line has not been logged lately.
func (s *Spoken) first(line string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, had := s.when[line]; had && now.Sub(at) < sameFor {
		return false
	}
	if s.when == nil {
		s.when = map[string]time.Time{}
	}
	for old, at := range s.when {
		if now.Sub(at) >= sameFor {
			delete(s.when, old)
		}
	}
	s.when[line] = now
	return true
}

// once is the log of one bucket. Of lines that differ in their bucket alone, in
// the port of a connection, or in a time that passes, it passes the first one
// on.
type once struct {
	slog.Handler
	spoken *Spoken
}

// Once returns such a log.
func Once(log slog.Handler, s *Spoken) slog.Handler { return once{log, s} }

func (o once) Handle(ctx context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if a.Value.Kind() != slog.KindDuration {
			line.WriteString("\n" + a.Key + "=" + far(a.Value.String()))
		}
		return true
	})
	if !o.spoken.first(line.String(), r.Time) {
		return nil
	}
	return o.Handler.Handle(ctx, r)
}
