package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// process is a part of the demo that runs on its own, and can be killed.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	errs   tail
	killed bool
	done   chan struct{} // closed after its end
	err    error         // how it ended
}

// launch starts a part. Its output must be read to the end by follow or drain.
func launch(cmd *exec.Cmd) (p *process, err error) {
	p = &process{cmd: cmd, done: make(chan struct{})}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	cmd.Stderr = &p.errs
	return p, cmd.Start()
}

// follow passes on what a worker reports, until its end.
func (p *process) follow(take func(message)) {
	defer close(p.done)
	dec := json.NewDecoder(p.out)
	for {
		var m message
		if err := dec.Decode(&m); err != nil {
			break // its end, in the middle of a line perhaps
		}
		take(m)
	}
	_, _ = io.Copy(io.Discard, p.out)
	p.err = p.cmd.Wait()
}

// firstLine returns the first line of a node's output, and follows it to its end.
func (p *process) firstLine(patience time.Duration) (string, error) {
	line := make(chan string, 1)
	go func() {
		defer close(p.done)
		r := bufio.NewReader(p.out)
		s, _ := r.ReadString('\n')
		line <- strings.TrimSpace(s)
		_, _ = io.Copy(io.Discard, r)
		p.err = p.cmd.Wait()
	}()
	select {
	case s := <-line:
		if s == "" {
			<-p.done
			return "", errors.Join(errors.New("it ended at once"), p.failure())
		}
		return s, nil
	case <-time.After(patience):
		return "", errors.New("it does not start")
	}
}

// kill ends the process as a power cut would: it cannot do anything about it.
func (p *process) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill()
}

// stop asks the process to end; one that does not is killed.
func (p *process) stop(patience time.Duration) {
	_ = p.in.Close()
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// failure is how the process ended, if it was not well. Only after done.
func (p *process) failure() error {
	if p.err == nil || p.killed {
		return nil
	}
	return fmt.Errorf("%w: %s", p.err, p.errs.String())
}

// tail keeps the last lines that were written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.b = append(t.b, p...); len(t.b) > 4096 {
		t.b = t.b[len(t.b)-4096:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}
