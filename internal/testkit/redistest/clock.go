package redistest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrNoFaketime says that libfaketime is missing, without which a server's
// clock cannot be set.
var ErrNoFaketime = errors.New("libfaketime is not installed, which WithClock needs: install it with `apt-get install faketime` " +
	"(Debian, Ubuntu) or `dnf install libfaketime` (Fedora); there is none for systems without glibc")

// WithClock gives each server a wall clock of its own, to be changed with
// [Server.SetClock]. It begins as the machine's. It needs libfaketime; where
// that is missing, [Run] returns [ErrNoFaketime].
func WithClock() Option {
	return func(c *config) { c.clock = true }
}

// clock is a server's wall clock: the machine's, plus offset at the moment
// since, and from then on faster by rate. Like a machine's it does not care
// whether the server runs.
type clock struct {
	file string // what libfaketime reads each time that the server looks at the clock

	offset time.Duration
	rate   float64
	since  time.Time
}

// now is what the clock shows at t.
func (c *clock) now(t time.Time) time.Time {
	return t.Add(c.offset + time.Duration(float64(t.Sub(c.since))*(c.rate-1)))
}

// write tells a process whose rate counts from began what the clock shows.
//
// libfaketime counts a rate from the start of the process, see [counted]. To
// write the offset and the new rate as they are would be wrong: after a minute,
// a rate of 1.005 would have the clock jump by 300 ms.
func (c *clock) write(began time.Time) error {
	offset := c.now(began).Sub(began)
	return replace(c.file, fmt.Appendf(nil, "%+.6f x%.6f\n", offset.Seconds(), c.rate))
}

// SetClock has the server's wall clock jump to the machine's plus offset, and
// run at rate times the machine's speed from there: SetClock(0, 1) sets it
// right again. What the server does next sees it. The clock goes on while the
// server is down, and timers that use the monotonic clock do not see it. It
// needs [WithClock].
func (s *Server) SetClock(offset time.Duration, rate float64) error {
	return s.setClock(rate, func(*clock, time.Time) time.Duration { return offset })
}

// ShiftClock has the server's wall clock jump by d from what it shows, and run
// at rate times the machine's speed from there: ShiftClock(0, 1.005) makes it
// fast and nothing else.
func (s *Server) ShiftClock(d time.Duration, rate float64) error {
	return s.setClock(rate, func(c *clock, t time.Time) time.Duration { return c.now(t).Sub(t) + d })
}

func (s *Server) setClock(rate float64, offset func(*clock, time.Time) time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.clock == nil:
		return fmt.Errorf("redistest: clock of %s: the server was started without WithClock", s.Addr())
	case !(rate > 0) || math.IsInf(rate, 0):
		return fmt.Errorf("redistest: clock of %s: a rate of %v", s.Addr(), rate)
	}
	t := time.Now()
	s.clock.offset, s.clock.rate, s.clock.since = offset(s.clock, t), rate, t
	if !s.proc.Running() {
		return nil // the next start will write it
	}
	return s.clock.write(s.began)
}

// Clock is what the server's wall clock shows now: the machine's time, where it
// has none of its own.
func (s *Server) Clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock == nil {
		return time.Now()
	}
	return s.clock.now(time.Now())
}

// openClock finds out whether the server can have a clock of its own, in a life
// of the server for that alone: a loader says nothing about a library that it
// does not load. The life ends before a client can have seen that time.
func (s *Server) openClock() error {
	libraries, err := faketime()
	if err != nil {
		return err
	}
	const ahead = time.Hour
	s.libraries = append(s.libraries, libraries...)
	s.clock = &clock{file: filepath.Join(s.dir, "clock"), offset: ahead, rate: 1, since: time.Now()}
	if err := s.start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	client := redis.NewClient(s.clientOptions())
	defer func() { _ = client.Close() }()
	shows, err := client.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("redistest: clock of %s: %w", s.Addr(), err)
	}
	if err := s.kill(); err != nil {
		return err
	}
	if time.Until(shows) < ahead/2 {
		return fmt.Errorf("redistest: clock of %s: %s was given %s, and its clock does not follow", s.Addr(), Binary, strings.Join(libraries, " and "))
	}
	s.clock.offset = 0
	return nil
}

// faketime finds libfaketime and the libc beside it.
//
// libfaketime alone ends a server that is linked with jemalloc, as Debian's is
// ("recursive calls to clock_gettime"): with libc named after it, it finds the
// true function there before jemalloc asks for it.
func faketime() ([]string, error) {
	for _, pattern := range []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1"} {
		libs, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("redistest: %w", err)
		}
		for _, lib := range libs {
			dir := filepath.Dir(filepath.Dir(lib))
			for _, libc := range []string{filepath.Join(dir, "libc.so.6"), filepath.Join(strings.TrimPrefix(dir, "/usr"), "libc.so.6")} {
				if _, err := os.Stat(libc); err == nil {
					return []string{lib, libc}, nil
				}
			}
		}
	}
	return nil, fmt.Errorf("redistest: %w", ErrNoFaketime)
}

// tidy removes what libfaketime has put into shared memory for a process, and
// leaves there when the process is killed. The process has it open and does not
// miss the name.
func (c *clock) tidy(pid int) {
	for _, name := range []string{"faketime_shm_%d", "sem.faketime_sem_%d"} {
		_ = os.Remove(filepath.Join("/dev/shm", fmt.Sprintf(name, pid))) // it may have ended by itself
	}
}
