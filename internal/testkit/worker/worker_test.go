package worker_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/testkit/worker"
)

const variable = "QUORATE_WORKER_TEST"

// terms are what a worker of these tests gets.
type terms struct {
	Role  string
	Lines int
}

func TestMain(m *testing.M) {
	var tm terms
	switch ok, err := worker.Terms(variable, &tm); {
	case err != nil:
		fmt.Println(err)
		os.Exit(2)
	case ok:
		work(tm)
		return
	}
	goleak.VerifyTestMain(m)
}

func work(tm terms) {
	for i := range tm.Lines {
		fmt.Println("line", i)
	}
	switch tm.Role {
	case "echoes":
		for s := bufio.NewScanner(os.Stdin); s.Scan(); {
			fmt.Println(s.Text())
		}
	case "fails":
		fmt.Print("in part")
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 10_000), "the reason")
		os.Exit(3)
	case "deaf":
		time.Sleep(time.Hour)
	}
}

// patience only guards against hanging.
const patience = 20 * time.Second

// start starts a worker whose lines arrive in a channel, which is closed at the
// end.
func start(t *testing.T, tm terms) (*worker.Worker, <-chan string) {
	t.Helper()
	cmd, err := worker.Self(variable, tm)
	require.NoError(t, err)
	lines := make(chan string, tm.Lines+10)
	w, err := worker.Start(cmd, func(line string) { lines <- line })
	require.NoError(t, err)
	go func() { <-w.Done(); close(lines) }()
	t.Cleanup(func() { assert.NoError(t, w.Kill()); wait(t, w) })
	return w, lines
}

func wait(t *testing.T, w *worker.Worker) {
	t.Helper()
	select {
	case <-w.Done():
	case <-time.After(patience):
		require.FailNow(t, "it does not end")
	}
}

func TestWorkerReportsUntilItsInputEnds(t *testing.T) {
	t.Parallel()
	w, lines := start(t, terms{Role: "echoes", Lines: 1})
	assert.Equal(t, "line 0", <-lines)
	for _, command := range []string{"one", "two"} {
		require.NoError(t, w.Tell(command))
		assert.Equal(t, command, <-lines)
	}
	require.NoError(t, w.End(patience))
	_, more := <-lines
	assert.False(t, more)
	assert.Error(t, w.Tell("three"), "it has ended")
}

// No line of a worker that ends at once is lost.
func TestLastLinesAreTaken(t *testing.T) {
	t.Parallel()
	const n = 20_000
	w, lines := start(t, terms{Lines: n})
	wait(t, w)
	require.NoError(t, w.Failure())
	for i := range n {
		require.Equal(t, fmt.Sprint("line ", i), <-lines)
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	w, lines := start(t, terms{Role: "fails"})
	wait(t, w)
	err := w.Failure()
	assert.ErrorContains(t, err, "exit status 3")
	assert.ErrorContains(t, err, "the reason")
	assert.Less(t, len(err.Error()), 5000)
	assert.Equal(t, "in part", <-lines)
}

func TestKilledIsNoFailure(t *testing.T) {
	t.Parallel()
	w, _ := start(t, terms{Role: "deaf"})
	require.NoError(t, w.Kill())
	wait(t, w)
	assert.NoError(t, w.Failure())
}

func TestEndDoesNotWaitWithoutBound(t *testing.T) {
	t.Parallel()
	w, _ := start(t, terms{Role: "deaf"})
	assert.ErrorContains(t, w.End(10*time.Millisecond), "does not end")
	assert.False(t, w.Running())
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	_, err := worker.Start(exec.Command("/no such program"), func(string) {})
	require.Error(t, err)
}

func TestTermsThatAreNone(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"=nonsense")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	assert.Error(t, cmd.Wait())
	assert.Contains(t, string(text), "the terms of a worker")
}
