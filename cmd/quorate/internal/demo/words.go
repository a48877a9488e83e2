package demo

import (
	"fmt"
	"strings"
	"time"
)

func (s *stage) intro() {
	s.print("%s\n", s.style.bold(fmt.Sprintf("%d workers, one file, one lock", s.Workers)))
	s.print("Each worker is a separate process. They share a file with a number in it. A worker reads")
	s.print("the number, waits a moment, writes the next number, and starts over. If two workers did that")
	s.print("at the same time, an update would be lost. So each worker takes the lock first.\n")
	switch {
	case s.Nodes == 1:
		s.print("The lock lives on one small Redis-like server, called a node.")
	default:
		s.print("The lock lives on %d small Redis-like servers, called nodes. A process holds the lock if %d of",
			s.Nodes, s.Nodes/2+1)
		s.print("them vote for it. Each holder also gets a token, a number that only goes up.")
	}
	s.print("Along the way, we kill a worker while it holds the lock%s.\n",
		map[bool]string{true: ", and then a node", false: ""}[s.Nodes > 2])
	if s.Nodes == 2 {
		s.print("(Both nodes must agree, so neither may fail. Try --nodes 3.)\n")
	}
}

func (s *stage) clock(at time.Duration) string { return fmt.Sprintf("%9s ", seconds(at)) }

func (s *stage) name(w int) string { return s.style.worker(w, fmt.Sprintf("worker %d", w+1)) }

// tell prints a hold that has ended.
func (s *stage) tell(h *hold) {
	if h.fate == lost {
		s.print("%s %s lost the lock before it was done and wrote nothing.", s.clock(h.end), s.name(h.worker))
		return
	}
	s.print("%s %s held the lock for %s and raised the number to %d, token %s", s.clock(h.end), s.name(h.worker),
		seconds(h.end-h.got), h.to, s.token(h.token))
}

func (s *stage) outro(v *verdict) {
	s.print("\n%s\n", s.style.bold("Who held the lock when"))
	end := time.Duration(0)
	for _, h := range s.holds {
		end = max(end, h.end)
	}
	s.print("%s\n", strings.Join(s.timeline(end, s.width(), s.style), "\n"))

	s.print("%s\n", s.style.bold("Did everything go right?"))
	s.checks(v)
	if v.handOver > 0 {
		s.print("\n  Handing over the lock took %s (median of %d; the slowest took %s).",
			brief(v.median), v.handOver, brief(v.slowest))
		s.print("  The nodes notify a waiter when it is its turn, so nobody polls.")
	}
	if !v.ok() {
		s.askForReport()
		return
	}
	s.print("\n%s", s.style.bold("Your turn"))
	s.print("  %s nodes                    start nodes, and copy the line it prints into a second terminal",
		s.Program)
	s.print("  %s lock demo -- sleep 10    then run a command under a lock there; start it twice", s.Program)
}

// checks prints what had to come out right.
func (s *screen) checks(v *verdict) {
	for _, c := range v.checks {
		mark := s.style.green(s.style.yes)
		if !c.ok {
			mark = s.style.red(s.style.no)
		}
		s.print("  %s %s", mark, strings.ReplaceAll(c.text, "\n", "\n    "))
	}
}

func (s *screen) askForReport() {
	s.print("\n%s", s.style.red("Something went wrong. Please report this with the output above."))
}
