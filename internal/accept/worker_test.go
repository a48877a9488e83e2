package accept_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/accept"
	"github.com/quorate/quorate/internal/redistest"
	"github.com/quorate/quorate/mutex"
)

// workerEnv makes this test binary a worker, with the terms it holds.
const workerEnv = "QUORATE_ACCEPT_WORKER"

func TestMain(m *testing.M) {
	if terms := os.Getenv(workerEnv); terms != "" {
		if err := work(terms); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	accept.Parallel(4)
	goleak.VerifyTestMain(m, accept.NeverReturns)
}

// terms are what a worker is told at its start.
type terms struct {
	URLs       []string
	Name       string
	TTL, Guard time.Duration
}

// work obeys commands, one per line, and answers each with one line or more:
//
//	lock         held TOKEN NANOSECONDS (of the wall clock, when it was got)
//	unlock       unlocked
//	count N FILE increments the number in FILE N times: TOKEN NUMBER for each, then done
//	share ...    see share_test.go: a use for each, then done
//	once ...     see once_test.go
//	lead ...     see leader_worker_test.go
func work(text string) error {
	var tm terms
	if err := json.Unmarshal([]byte(text), &tm); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), accept.Patience)
	defer cancel()
	q, err := quorate.Connect(ctx, tm.URLs, accept.Guarded(tm.TTL, tm.Guard), quorate.WithLogger(nil))
	if err != nil {
		return err
	}
	m := mutex.New(q, tm.Name)
	fmt.Println("ready")
	for commands.Scan() {
		command := strings.Fields(commands.Text())
		switch command[0] {
		case "lock":
			m.Lock()
			fmt.Println("held", m.Lease().Token(), time.Now().UnixNano())
		case "unlock":
			m.Unlock()
			fmt.Println("unlocked")
		case "count":
			n, err := strconv.Atoi(command[1])
			if err != nil {
				return err
			}
			for range n {
				if err := increment(m, command[2]); err != nil {
					return err
				}
			}
			fmt.Println("done")
		case "share":
			if err := share(q, tm.Name, command[1], command[2], command[3]); err != nil {
				return err
			}
			fmt.Println("done")
		default:
			if err := modes[command[0]](q, tm.Name, command[1:]); err != nil {
				return err
			}
		}
	}
	return q.Close()
}

// commands are what a worker is told; they end with the test, in whatever way that ends.
var commands = bufio.NewScanner(os.Stdin)

// modes are what else a worker can do, by the first word of a command: other
// files of this package add to it.
var modes = map[string]func(q *quorate.Quorum, name string, args []string) error{}

// increment reads a number, adds one, and writes it back: with nothing but m
// between it and all others who do so.
func increment(m *mutex.Mutex, file string) error {
	m.Lock()
	lease := m.Lease()
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("somebody else is writing: %w", err)
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	if cause := context.Cause(lease.Context()); cause != nil {
		return fmt.Errorf("while it was at work: %w", cause)
	}
	m.Unlock()
	fmt.Println(lease.Token(), n+1)
	return nil
}

// worker is a process that works for a test.
type worker struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // closed when the process has ended
}

// hire starts a worker and returns when it is ready.
func hire(t *testing.T, c *redistest.Cluster, tm terms) *worker {
	t.Helper()
	return hireAt(t, c.URLs(), tm)
}

// hireAt is hire for servers at URLs.
func hireAt(t *testing.T, urls []string, tm terms) *worker {
	t.Helper()
	tm.URLs = urls
	text, err := json.Marshal(tm)
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	w := &worker{cmd: exec.Command(exe), lines: make(chan string, 10_000)}
	// The race detector would otherwise sleep for a second as the worker ends.
	race := "GORACE=atexit_sleep_ms=0 " + os.Getenv("GORACE")
	w.cmd.Env = append(os.Environ(), workerEnv+"="+string(text), race)
	w.cmd.Stderr = os.Stderr
	w.in, err = w.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := w.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, w.cmd.Start())
	go func() {
		defer close(w.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			w.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = w.in.Close()
		for range w.lines { // until it has ended
		}
		_ = w.cmd.Wait()
	})
	require.Equal(t, "ready", w.answer(t))
	return w
}

// tell gives the worker a command.
func (w *worker) tell(t *testing.T, command string) {
	t.Helper()
	_, err := io.WriteString(w.in, command+"\n")
	require.NoError(t, err)
}

// answer waits for the worker's next line.
func (w *worker) answer(t *testing.T) string {
	t.Helper()
	line, ok := within(t, accept.Patience, w.lines)
	require.True(t, ok, "the worker has ended")
	return line
}

// held waits until the worker has the lock: with which token, and since when.
func (w *worker) held(t *testing.T) (token uint64, at time.Time) {
	t.Helper()
	var ns int64
	line := w.answer(t)
	_, err := fmt.Sscanf(line, "held %d %d", &token, &ns)
	require.NoError(t, err, line)
	return token, time.Unix(0, ns)
}

// kill ends the worker as kill -9 does, and returns when it is gone.
func (w *worker) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, w.cmd.Process.Kill())
	for range w.lines {
	}
	_ = w.cmd.Wait()
}

// within waits for what must happen, and not too late to be it.
func within[T any](t *testing.T, d time.Duration, c <-chan T) (v T, ok bool) {
	t.Helper()
	select {
	case v, ok = <-c:
	case <-time.After(d):
		require.FailNow(t, "has not happened", "within %v", d)
	}
	return v, ok
}
