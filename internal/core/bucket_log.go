package core

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// This file owns what the log has of 64 buckets: they share servers, so they
// lose and get them together.

// sameFor is how long a line that says the same is left out.
const sameFor = 10 * time.Second

// far is a text without the near ends of connections, as "10.0.0.1:40012->":
// each bucket has a port of its own.
func far(text string) string {
	for {
		before, after, found := strings.Cut(text, "->")
		if !found {
			return text
		}
		text = before[:strings.LastIndexByte(before, ' ')+1] + after
	}
}

// spoken are lines that the buckets have logged. It is safe for concurrent use.
type spoken struct {
	mu   sync.Mutex
	when map[string]time.Time
}

// first reports whether a line has not been logged lately.
func (s *spoken) first(line string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, had := s.when[line]; had && now.Sub(at) < sameFor {
		return false
	}
	for old, at := range s.when {
		if now.Sub(at) >= sameFor {
			delete(s.when, old)
		}
	}
	s.when[line] = now
	return true
}

// once is the log of one bucket. Of lines that differ in their bucket alone, or
// in the port of a connection, it passes the first one on.
type once struct {
	slog.Handler
	spoken *spoken
}

func (o once) Handle(ctx context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		line.WriteString("\n" + a.Key + "=" + far(a.Value.String()))
		return true
	})
	if !o.spoken.first(line.String(), r.Time) {
		return nil
	}
	return o.Handler.Handle(ctx, r)
}
