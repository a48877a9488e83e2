package redistest

import (
	"fmt"
	"math"
	"time"
)

// SetClock has the server's wall clock jump to the machine's plus offset, and
// run at rate times the machine's speed from there: SetClock(0, 1) sets it
// right again. What the server does next sees it. The clock goes on while the
// server is down, and timers that use the monotonic clock do not see it. It
// needs [WithClock].
func (s *Server) SetClock(offset time.Duration, rate float64) error {
	return s.setClock(rate, func(time.Time) time.Duration { return offset })
}

// ShiftClock has the server's wall clock jump by d from what it shows, and run
// at rate times the machine's speed from there: ShiftClock(0, 1.005) makes it
// fast and nothing else.
func (s *Server) ShiftClock(d time.Duration, rate float64) error {
	return s.setClock(rate, func(t time.Time) time.Duration { return s.host.clock.now(t).Sub(t) + d })
}

func (s *Server) setClock(rate float64, offset func(time.Time) time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case !s.cfg.ownClock:
		return fmt.Errorf("redistest: clock of %s: the server was started without WithClock", s.Addr())
	case !(rate > 0) || math.IsInf(rate, 0):
		return fmt.Errorf("redistest: clock of %s: a rate of %v", s.Addr(), rate)
	}
	t := time.Now().Round(0)
	c := clock{s.host.clock.changes + 1, offset(t), rate - 1, t}
	// The server reads what the previous change has written until this one counts.
	// A half of it counts as none.
	shown := []uint64{uint64(c.offset), uint64(t.UnixNano()), math.Float64bits(c.gains)}
	if err := s.host.write(int64(shownAt+c.changes%2*shownSize), shown...); err != nil {
		return err
	}
	if err := s.host.write(changesAt, c.changes); err != nil {
		return err
	}
	s.host.clock = c
	return nil
}

// Clock is what the server's wall clock shows now: the machine's time, where it
// has none of its own.
func (s *Server) Clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.host.clock.now(time.Now())
}
