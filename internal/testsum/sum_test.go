package main

import (
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stage runs a shell script as a stage.
func stage(s *sum, name, script string) {
	s.run(name, exec.Command("sh", "-c", script))
}

const events = `cat <<'END'
a word of the stage
{"Action":"run","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"nothing to see\n"}
{"Action":"pass","Package":"p","Test":"TestGood"}
{"Action":"run","Package":"p","Test":"TestBad"}
{"Action":"run","Package":"p","Test":"TestBad/sub"}
{"Action":"output","Package":"p","Test":"TestBad/sub","Output":"=== RUN   TestBad/sub\n"}
{"Action":"output","Package":"p","Test":"TestBad/sub","Output":"two holders\n"}
{"Action":"fail","Package":"p","Test":"TestBad/sub"}
{"Action":"fail","Package":"p","Test":"TestBad"}
{"Action":"run","Package":"p","Test":"TestNot"}
{"Action":"output","Package":"p","Test":"TestNot","Output":"    a_test.go:7: no server\n"}
{"Action":"output","Package":"p","Test":"TestNot","Output":"--- SKIP: TestNot (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestNot"}
{"Action":"fail","Package":"p"}
END
exit 1`

func TestSum(t *testing.T) {
	var out strings.Builder
	s := sum{out: &out}
	stage(&s, "lint", "echo unformatted; exit 2")
	stage(&s, "unit", events)
	stage(&s, "empty", "true")
	assert.False(t, s.report())
	said := out.String()
	for _, line := range []string{
		"unformatted\n", "== lint FAILED in ", "a word of the stage\n",
		"FAILED: p TestBad/sub\ntwo holders\n", "FAILED: p TestBad\n",
		"== empty passed in ", "\nskipped: p TestNot: a_test.go:7: no server\n", "\nfailed: p TestBad\n",
		"\nfailed stages: lint unit\n",
	} {
		assert.Contains(t, said, line)
	}
	assert.NotContains(t, said, "nothing to see")
	assert.NotContains(t, said, "=== RUN")
	assert.True(t, strings.HasSuffix(said, "\n1 passed, 3 failed, 1 skipped\n"), said)
}

func TestSumOfWhatNeverEnds(t *testing.T) {
	var out strings.Builder
	s := sum{out: &out}
	stage(&s, "unit", `cat <<'END'
{"Action":"run","Package":"p","Test":"TestHangs"}
{"Action":"output","Package":"p","Test":"TestHangs","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"p"}
{"Action":"build-output","ImportPath":"q","Output":"undefined: x\n"}
{"Action":"build-fail","ImportPath":"q"}
{"Action":"fail","Package":"q"}
END
exit 1`)
	assert.False(t, s.report())
	for _, line := range []string{"FAILED: p TestHangs\npanic: test timed out\n",
		"undefined: x\n", "FAILED: q\n"} {
		assert.Contains(t, out.String(), line)
	}
	assert.True(t, strings.HasSuffix(out.String(), "\n0 passed, 2 failed, 0 skipped\n"), out.String())
}

func TestSumInCI(t *testing.T) {
	for _, strict := range []bool{false, true} {
		s := sum{out: &strings.Builder{}, strict: strict}
		stage(&s, "unit", `echo '{"Action":"skip","Package":"p","Test":"TestNot"}'`)
		assert.Equal(t, !strict, s.report())
	}
}

// A program that cannot be started is a stage that fails.
func TestSumOfNoProgram(t *testing.T) {
	s := sum{out: &strings.Builder{}}
	s.run("unit", exec.Command("/nonexistent"))
	assert.False(t, s.report())
}

// While a stage runs, each tick shows what passed and what runs.
func TestProgress(t *testing.T) {
	ticks := make(chan time.Time)
	r, w := io.Pipe()
	lines := make(chan string)
	s := sum{out: &strings.Builder{}, stage: "unit", start: time.Unix(100, 0), ticks: ticks}
	s.progress = func(line string) { lines <- line }
	done := make(chan struct{})
	go func() { defer close(done); s.read(r) }()
	say := func(events ...string) {
		for _, e := range events {
			_, err := io.WriteString(w, e+"\n")
			assert.NoError(t, err)
		}
	}
	ticks <- time.Unix(101, 0)
	assert.Equal(t, "   unit 1s: 0 passed", <-lines)
	say(`{"Action":"start","Package":"x/core"}`, `{"Action":"start","Package":"x/mutex"}`,
		`{"Action":"pass","Package":"x/core","Test":"TestGood"}`)
	line := ""
	for !strings.Contains(line, "1 passed") { // the last events may still be on their way
		ticks <- time.Unix(172, 0)
		line = <-lines
	}
	assert.Equal(t, "   unit 1m12s: 1 passed; now core, mutex", line)
	say(`{"Action":"pass","Package":"x/core"}`, `{"Action":"fail","Package":"x/mutex","Test":"TestBad"}`)
	require.NoError(t, w.Close())
	<-done
	assert.Equal(t, "   unit 1m30s: 1 passed, 1 failed; now mutex", s.status(time.Unix(190, 0)))
}

// On a terminal output takes the place of the line of progress.
func TestScreen(t *testing.T) {
	var out strings.Builder
	s := screen{out: &out, live: true}
	s.progress("one")
	s.progress(strings.Repeat("é", 100))
	_, err := s.Write([]byte("FAILED\n"))
	require.NoError(t, err)
	_, err = s.Write([]byte("again\n"))
	require.NoError(t, err)
	assert.Equal(t, "\r\x1b[Kone\r\x1b[K"+strings.Repeat("é", 78)+"…\r\x1b[KFAILED\nagain\n", out.String())
	out.Reset()
	s.live = false
	s.progress("two")
	assert.Equal(t, "two\n", out.String())
}
