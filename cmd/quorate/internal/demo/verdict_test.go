package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// example is a short story in which everything went well: worker 1 works,
// worker 2 is killed, worker 3 and worker 1 follow.
func example() *story {
	s := &story{nodes: 3, workers: 3, ttl: time.Second, length: 4 * time.Second, nodeDown: 1,
		nodeDownAt: 2500 * time.Millisecond}
	at := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
	s.holds = []*hold{
		{worker: 0, token: 10, from: 0, to: 1, wrote: true, got: at(0), end: at(490), until: at(1000), fate: done},
		{worker: 1, token: 20, from: 1, got: at(500), end: at(800), until: at(1400), fate: killed},
		{worker: 2, token: 30, from: 1, to: 2, wrote: true, got: at(1500),
			end: at(2000), until: at(2500), fate: done},
		{worker: 0, token: 40, from: 2, to: 3, wrote: true, got: at(2600),
			end: at(4000), until: at(3600), fate: done},
	}
	s.victim, s.successor = s.holds[1], s.holds[2]
	return s
}

func TestJudge(t *testing.T) {
	v := example().judge(3)
	assert.True(t, v.ok(), "%+v", v.checks)
	assert.Len(t, v.checks, 5)
	assert.Equal(t, 2, v.handOver)

	for name, c := range map[string]struct {
		number int
		spoil  func(s *story)
	}{
		"a count was lost":          {2, func(*story) {}},
		"a count too many":          {4, func(*story) {}},
		"two at once":               {3, func(s *story) { s.holds[0].end = 510 * time.Millisecond }},
		"a token again":             {3, func(s *story) { s.holds[3].token = 30 }},
		"no worker was killed":      {3, func(s *story) { s.victim = nil }},
		"no worker came after":      {3, func(s *story) { s.successor = nil }},
		"the successor was early":   {3, func(s *story) { s.victim.until = 1600 * time.Millisecond }},
		"the successor was late":    {3, func(s *story) { s.ttl = -2 * time.Second }},
		"the node's death stops it": {3, func(s *story) { s.nodeDownAt = 3 * time.Second }},
	} {
		s := example()
		c.spoil(s)
		assert.False(t, s.judge(c.number).ok(), name)
	}

	s := example()
	s.holds[2].from, s.holds[2].to, s.holds[3].from, s.holds[3].to = 2, 3, 3, 4
	assert.True(t, s.judge(4).ok(), "the victim had written and could not say so")
	assert.False(t, (&story{nodeDown: -1}).judge(0).ok(), "nothing has happened")
}

// A worker that is killed after its lease has ended held the lock until the
// lease ended.
func TestKilledAfterItsLease(t *testing.T) {
	s := example()
	s.victim.until = s.successor.got - time.Millisecond
	s.victim.kill(s.successor.got + time.Second)
	assert.True(t, s.judge(3).ok())
}

func TestTimeline(t *testing.T) {
	got := example().timeline(4*time.Second, margin+2+40, asciiStyle)
	assert.Equal(t, strings.Trim(`
            0s        1s        2s        3s
  worker 1  #####.....................##############
  worker 2  .....###X
  worker 3  ...............#####....................
  node 1    ----------------------------------------
  node 2    -------------------------X
  node 3    ----------------------------------------
            # holds the lock   . waits for it   X killed   - node is up
`, "\n"), strings.Join(got, "\n"))
}

func TestStyle(t *testing.T) {
	env := func(kv ...string) func(string) string {
		return func(k string) string {
			for i := 0; i < len(kv); i += 2 {
				if kv[i] == k {
					return kv[i+1]
				}
			}
			return ""
		}
	}
	st := styleFor(true, env("TERM", "xterm"))
	assert.Contains(t, st.red("x"), "\x1b[")
	assert.Equal(t, "█", st.block)
	for _, st := range []style{
		styleFor(false, env("TERM", "xterm")),
		styleFor(true, env("TERM", "xterm", "NO_COLOR", "1")),
		styleFor(true, env("TERM", "dumb")),
	} {
		assert.Equal(t, "x", st.red("x"))
	}
	assert.Equal(t, "#", func() string { st := styleFor(true, env("LANG", "C")); return st.block }())
	assert.Equal(t, "█", func() string {
		st := styleFor(true,
			env("LC_ALL", "en_US.UTF-8", "LANG", "C"))
		return st.block
	}())
}

func TestShortener(t *testing.T) {
	f := shortener(1838336893371595776, "..")
	assert.Equal(t, "..6893371595776", f(1838336893371595776))
	assert.Equal(t, "..7000000000000", f(1838337000000000000), "a minute later still in order")
	assert.Equal(t, "..293371595776", shortener(1838336293371595776, "..")(1838336293371595776))
}
