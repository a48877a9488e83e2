// Package worker starts worker processes, which take commands and report, a
// line each.
//
//	parent ──Tell──▶ standard input of the worker
//	parent ◀──take── standard output of the worker
//
// A worker ends when its input ends. So it ends with its parent, in whatever
// way that ends (see also testkit/process for a worker that is stopped).
//
// The package knows neither the commands nor the reports: those are the user's.
// Most workers are the program that starts them, run again: see [Self] and
// [Terms].
package worker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/testkit/process"
)

// Worker is a worker process, seen by its parent. It owns the process, its
// input and the goroutine that reads its output. Its methods may be called
// concurrently.
type Worker struct {
	*process.Process
	in     io.WriteCloser
	errors tail
	killed atomic.Bool
	done   chan struct{} // closed when it has ended and all its lines were taken
}

// Start starts cmd as a worker. It calls take for each line that the worker
// reports, in order and one at a time, also for those that a worker wrote
// before it was killed. A line that was written in part is passed on as it is.
// Where cmd has no Stderr, [Worker.Failure] keeps its end.
func Start(cmd *exec.Cmd, take func(line string)) (*Worker, error) {
	w := &Worker{done: make(chan struct{})}
	if cmd.Stderr == nil {
		cmd.Stderr = &w.errors
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	w.in = in
	// A pipe of cmd's own making would be closed when the process has ended,
	// before its last lines were read.
	out, outOfWorker, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	cmd.Stdout = outOfWorker
	w.Process, err = process.Start(cmd)
	_ = outOfWorker.Close() // the worker has its own
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	go func() {
		defer close(w.done)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				take(string(bytes.TrimRight([]byte(line), "\r\n")))
			}
			if err != nil {
				break
			}
		}
		_ = out.Close()
		<-w.Exited()
	}()
	return w, nil
}

// Tell gives the worker a command.
func (w *Worker) Tell(command string) error {
	_, err := io.WriteString(w.in, command+"\n")
	return err
}

// EndInput tells the worker to end.
func (w *Worker) EndInput() { _ = w.in.Close() }

// Done is closed when the worker has ended and take has returned for its last
// line.
func (w *Worker) Done() <-chan struct{} { return w.done }

// Kill ends the worker as kill -9 does, and returns when the process is gone.
// Its last lines may still be taken then: see [Worker.Done].
func (w *Worker) Kill() error {
	w.killed.Store(true)
	return w.Process.Kill()
}

// End tells the worker to end, waits for that, and returns how it has ended.
// One that has not ended after d is killed, and that is an error.
func (w *Worker) End(d time.Duration) error {
	w.EndInput()
	select {
	case <-w.done:
		return w.Failure()
	case <-time.After(d):
		err := fmt.Errorf("process %d does not end within %v", w.Pid(), d)
		return errors.Join(err, w.Kill())
	}
}

// Failure is how the worker has ended, with the last of what it wrote to its
// standard error: nil if it was killed by Kill, or ended with a status of 0. It
// must not be called before [Worker.Done] is closed.
func (w *Worker) Failure() error {
	err := w.Err()
	if err == nil || w.killed.Load() {
		return nil
	}
	return fmt.Errorf("%w: %s", err, w.errors.String())
}

// Self is the command that runs this program again, as a worker that finds its
// terms in an environment variable.
func Self(variable string, terms any) (*exec.Cmd, error) {
	text, err := json.Marshal(terms)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	// The race detector would otherwise sleep for a second as the worker ends.
	cmd.Env = append(os.Environ(), variable+"="+string(text), "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	return cmd, nil
}

// Terms reads what [Self] has put into the variable. It says whether this
// process is such a worker.
func Terms(variable string, terms any) (bool, error) {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal([]byte(text), terms); err != nil {
		return true, fmt.Errorf("the terms of a worker: %w", err)
	}
	return true, nil
}

// tail keeps the end of what is written to it. It may be used concurrently.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailLength = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.b = append(t.b, p...); len(t.b) > tailLength {
		t.b = t.b[len(t.b)-tailLength:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}
