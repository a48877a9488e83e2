package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/testkit/worker"
	"github.com/quorate/quorate/mutex"
)

// workerEnv makes this test binary a worker, with the terms it holds.
const workerEnv = "QUORATE_E2E_WORKER"

func TestMain(m *testing.M) {
	var tm terms
	if ok, err := worker.Terms(workerEnv, &tm); ok {
		if err == nil {
			err = work(tm)
		}
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	e2e.Parallel(4)
	e2e.Quiet()
	goleak.VerifyTestMain(redistest.Share(m), e2e.NeverReturns)
}

// terms are what a worker gets at its start.
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
func work(tm terms) error {
	ctx, cancel := context.WithTimeout(context.Background(), e2e.Patience)
	defer cancel()
	q, err := quorate.Connect(ctx, tm.URLs, e2e.Through(),
		e2e.Guarded(tm.TTL, tm.Guard), quorate.WithLogger(nil))
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

// commands are what a worker is sent; they end with the test, in whatever way
// that ends.
var commands = bufio.NewScanner(os.Stdin)

// modes are what else a worker can do, by the first word of a command: other
// files of this package add to it.
var modes = map[string]func(q *quorate.Quorum, name string, args []string) error{}

// increment reads a number, adds one, and writes it back: with nothing but m
// between it and all other writers.
func increment(m *mutex.Mutex, file string) error {
	m.Lock()
	lease := m.Lease()
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("another process is writing: %w", err)
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

// process is a worker process of a test. Its reports arrive in lines.
type process struct {
	*worker.Worker
	lines chan string // closed when the process has ended
}

// startWorker starts a worker on the servers of c, and returns when it is
// ready.
func startWorker(t *testing.T, c *redistest.Cluster, tm terms) *process {
	t.Helper()
	return startWorkerAt(t, c.URLs(), tm)
}

// startWorkerAt is startWorker for servers at URLs.
func startWorkerAt(t *testing.T, urls []string, tm terms) *process {
	t.Helper()
	tm.URLs = urls
	cmd, err := worker.Self(workerEnv, tm)
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	p := &process{lines: make(chan string, 10_000)}
	p.Worker, err = worker.Start(cmd, func(line string) { p.lines <- line })
	require.NoError(t, err)
	go func() { <-p.Done(); close(p.lines) }()
	t.Cleanup(func() {
		p.EndInput()
		for range p.lines { // until it has ended
		}
	})
	require.Equal(t, "ready", p.answer(t))
	return p
}

// tell gives the worker a command.
func (p *process) tell(t *testing.T, command string) {
	t.Helper()
	require.NoError(t, p.Tell(command))
}

// answer waits for the worker's next line.
func (p *process) answer(t *testing.T) string {
	t.Helper()
	line := e2e.Receive(t, p.lines)
	require.NotEmpty(t, line, "the worker has ended")
	return line
}

// until returns the worker's next line that begins so.
func (p *process) until(t *testing.T, begins string) string {
	t.Helper()
	for {
		if line := p.answer(t); strings.HasPrefix(line, begins) {
			return line
		}
	}
}

// held waits until the worker has the lock: with which token, and since when.
func (p *process) held(t *testing.T) (token uint64, at time.Time) {
	t.Helper()
	var ns int64
	line := p.answer(t)
	_, err := fmt.Sscanf(line, "held %d %d", &token, &ns)
	require.NoError(t, err, line)
	return token, time.Unix(0, ns)
}

// kill ends the worker as kill -9 does, and returns when it is gone and all
// that it has reported was read.
func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Kill())
	for range p.lines {
	}
}
