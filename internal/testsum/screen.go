package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
	"unicode/utf8"
)

// screen writes a stage's output and, below it, a line of progress. On a
// terminal the line is replaced each time; in a file each is a line of its own.
type screen struct {
	out   io.Writer
	live  bool          // a terminal
	every time.Duration // how often progress is written

	mu    sync.Mutex
	shown bool // the last line of the terminal is one of progress
}

// newScreen returns the screen of a file.
func newScreen(f *os.File) *screen {
	s := &screen{out: f, every: 30 * time.Second}
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		s.live, s.every = true, time.Second
	}
	return s
}

// Write writes output in place of the line of progress.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		s.shown = false
		fmt.Fprint(s.out, "\r\x1b[K")
	}
	return s.out.Write(p)
}

// progress writes a line of progress.
func (s *screen) progress(line string) {
	if !s.live {
		fmt.Fprintln(s, line)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	const columns = 79 // a longer line would wrap, and only its end would be replaced
	if utf8.RuneCountInString(line) > columns {
		line = string([]rune(line)[:columns-1]) + "…"
	}
	s.shown = true
	fmt.Fprint(s.out, "\r\x1b[K"+line)
}
