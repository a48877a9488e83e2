package redistest

import (
	"strconv"
	"strings"
	"testing"
)

// Calls is how often the servers have run a command, all of them together, also
// where a script has called it, by their own account.
func (c *Cluster) Calls(t testing.TB, command string) (n int) {
	t.Helper()
	for i := range c.Len() {
		n += c.Node(i).Calls(t, command)
	}
	return n
}

// Calls is how often this server has run a command.
func (s *Server) Calls(t testing.TB, command string) int {
	t.Helper()
	info, err := s.Client().Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatalf("redistest: the statistics of %s: %v", s.Addr(), err)
	}
	_, rest, found := strings.Cut(info, "cmdstat_"+command+":calls=")
	if !found {
		return 0 // never
	}
	calls, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(calls)
	if err != nil {
		t.Fatalf("redistest: the statistics of %s: %v", s.Addr(), err)
	}
	return n
}
