package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// client is a client process, in its several lives.
type client struct {
	terms terms
	id    int
	dir   string
	spawn *spawner
	lives int

	// Of lives that are over, and of this one.
	doneBefore, failedBefore int64
	done, failed             atomic.Int64

	mu      sync.Mutex // one change of state at a time
	cmd     *exec.Cmd
	in      io.WriteCloser
	over    chan struct{} // closed when the process has ended
	bye     *atomic.Bool  // it has said so, or is being killed: its end is no surprise
	calm    bool
	wall    time.Duration // by which its wall clock is wrong
	crashes atomic.Int64  // ends that were a surprise
}

// start begins a life, unless another fault has done so since the client was killed.
func (c *client) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil {
		return nil
	}
	return c.launch()
}

// launch begins a life.
func (c *client) launch() error {
	tm := c.terms
	c.lives++
	tm.Prefix = fmt.Sprintf("c%d.%d", c.id, c.lives)
	tm.Log = filepath.Join(c.dir, tm.Prefix+".log")
	tm.Calm, tm.Wall = c.calm, c.wall
	text, err := json.Marshal(tm)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe)
	// The race detector would otherwise sleep for a second as the client ends.
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text), "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	cmd.Stderr = os.Stderr
	own(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.spawn.start(cmd); err != nil {
		return err
	}
	c.cmd, c.in, c.over, c.bye = cmd, in, make(chan struct{}), &atomic.Bool{}
	c.doneBefore, c.failedBefore = c.doneBefore+c.done.Swap(0), c.failedBefore+c.failed.Swap(0)
	go c.listen(cmd, out, c.over, c.bye)
	return nil
}

// listen reads what the process says until it ends.
func (c *client) listen(cmd *exec.Cmd, out io.Reader, over chan struct{}, bye *atomic.Bool) {
	defer close(over)
	for s := bufio.NewScanner(out); s.Scan(); {
		var done, failed int64
		switch _, err := fmt.Sscanf(s.Text(), sayDone+" %d %d", &done, &failed); {
		case err == nil:
			c.done.Store(done)
			c.failed.Store(failed)
		case s.Text() == sayBye:
			bye.Store(true)
		}
	}
	_ = cmd.Wait() // how it ended shows in what it said
	if !bye.Load() {
		c.crashes.Add(1)
	}
}

// kill ends the process as kill -9 does.
func (c *client) kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end()
}

func (c *client) end() error {
	if c.cmd == nil {
		return nil
	}
	c.bye.Store(true)
	_ = c.cmd.Process.Kill()
	<-c.over
	_ = c.in.Close()
	c.cmd = nil
	return nil
}

func (c *client) signal(s syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return nil
	}
	return c.cmd.Process.Signal(s)
}

// restart kills the process, and starts it again after down with a wall clock that is
// wrong by off.
func (c *client) restart(ctx context.Context, down, off time.Duration) error {
	if err := c.kill(); err != nil {
		return err
	}
	wait(ctx, down)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = off
	if err := c.end(); err != nil { // another fault has started it meanwhile
		return err
	}
	return c.launch()
}

// setWall sets its wall clock, and that of all its later lives, to be wrong by off.
func (c *client) setWall(off time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = off
	if c.cmd == nil {
		return nil
	}
	_, err := fmt.Fprintf(c.in, sayWall+"\n", int64(off))
	return err
}

// beCalm tells it, and all its later lives, that all has been healed.
func (c *client) beCalm() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calm = true
	if c.cmd == nil {
		return errors.New("is not running")
	}
	_, err := io.WriteString(c.in, sayCalm+"\n")
	return err
}

// finish has it close everything, and fails if it has not within d.
func (c *client) finish(d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return errors.New("is not running")
	}
	if _, err := io.WriteString(c.in, sayFinish+"\n"); err != nil {
		return fmt.Errorf("has ended before it was told to: %w", err)
	}
	select {
	case <-c.over:
	case <-time.After(d):
		return fmt.Errorf("does not end within %v", d)
	}
	if !c.bye.Load() {
		return errors.New("has ended without a word")
	}
	_ = c.in.Close()
	c.cmd = nil
	return nil
}

// counts are the holds begun and the refusals so far, over all lives.
func (c *client) counts() (done, failed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doneBefore + c.done.Load(), c.failedBefore + c.failed.Load()
}
