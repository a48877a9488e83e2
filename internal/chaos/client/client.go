package client

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/testkit/worker"
)

// Client is a client process through its successive lives: each restart begins
// a new life.
type Client struct {
	Terms Terms
	ID    int
	Dir   string
	// The list to start with, given the previous list; see fleet.Present.
	Present func(addrs []string) []string
	lives   int

	// Counts of earlier lives, and of this one.
	doneBefore, failedBefore int64
	done, failed             atomic.Int64

	mu     sync.Mutex     // one change of state at a time
	worker *worker.Worker // the process of this life; nil if there is none
	over   chan struct{}  // closed when the process has ended and its end has been judged
	// The process has said that it will end, or is being killed, so its end is
	// expected.
	bye     *atomic.Bool
	calm    bool
	frozen  bool         // stopped: no fault may continue it
	Crashes atomic.Int64 // unexpected ends
	listed  int64        // when it was given its list of nodes
	Lists   map[string]List
}

// Start begins a life, unless another fault has already restarted the client.
func (c *Client) Start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.worker != nil {
		return nil
	}
	return c.launch()
}

// Relist kills the process and starts it with another list of nodes.
func (c *Client) Relist(addrs []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.end(); err != nil {
		return err
	}
	c.Terms.Addrs, c.listed = addrs, record.Now()
	return c.launch()
}

// KeepUp restarts the process if its list is outdated, because a process that
// starts with an outdated list may not find the set.
func (c *Client) KeepUp() error {
	c.mu.Lock()
	old := c.Terms.Addrs
	c.mu.Unlock()
	if addrs := c.Present(old); !slices.Equal(addrs, old) {
		return c.Relist(addrs)
	}
	return nil
}

// Freeze stops the process until Thaw, whatever other faults do.
func (c *Client) Freeze() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.worker == nil {
		return nil
	}
	c.frozen = true
	return c.worker.Signal(syscall.SIGSTOP)
}

// Thaw continues the process.
func (c *Client) Thaw() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = false
	if c.worker == nil {
		return nil
	}
	return c.worker.Signal(syscall.SIGCONT)
}

// launch begins a life.
func (c *Client) launch() error {
	tm := c.Terms
	tm.Addrs = c.Present(tm.Addrs)
	c.lives++
	tm.Prefix = fmt.Sprintf("c%d.%d", c.ID, c.lives)
	tm.Log = filepath.Join(c.Dir, tm.Prefix+".log")
	tm.Calm = c.calm
	if c.Lists == nil {
		c.Lists = map[string]List{}
	}
	c.Lists[tm.Prefix] = List{tm.Addrs, c.listed}
	cmd, err := worker.Self(workerEnv, tm)
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // only the harness handles the terminal's Ctrl-C
	c.doneBefore, c.failedBefore = c.doneBefore+c.done.Swap(0), c.failedBefore+c.failed.Swap(0)
	bye, over := &atomic.Bool{}, make(chan struct{})
	w, err := worker.Start(cmd, func(line string) { c.take(line, bye) })
	if err != nil {
		return err
	}
	c.worker, c.over, c.bye = w, over, bye
	go func() {
		defer close(over)
		<-w.Done() // its output tells how it ended
		if !bye.Load() {
			c.Crashes.Add(1)
		}
	}()
	return nil
}

// take handles a line that the process has written.
func (c *Client) take(line string, bye *atomic.Bool) {
	var done, failed int64
	switch _, err := fmt.Sscanf(line, sayDone+" %d %d", &done, &failed); {
	case err == nil:
		c.done.Store(done)
		c.failed.Store(failed)
	case line == sayBye:
		bye.Store(true)
	}
}

// Kill ends the process like kill -9.
func (c *Client) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end()
}

func (c *Client) end() error {
	if c.worker == nil {
		return nil
	}
	c.bye.Store(true)
	err := c.worker.Kill()
	<-c.over
	c.worker, c.frozen = nil, false
	return err
}

// Signal sends the process a signal, unless it is frozen.
func (c *Client) Signal(s syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.worker == nil || c.frozen {
		return nil
	}
	return c.worker.Signal(s)
}

// BeCalm tells the process, and all its later lives, that all faults have
// ended.
func (c *Client) BeCalm() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calm = true
	if c.worker == nil {
		return errors.New("is not running")
	}
	return c.worker.Tell(sayCalm)
}

// Finish tells the process to lock every name once more and to close. It fails
// if that takes longer than d.
func (c *Client) Finish(d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.worker == nil {
		return errors.New("is not running")
	}
	if err := c.worker.Tell(sayFinish); err != nil {
		return fmt.Errorf("has ended before the command to end: %w", err)
	}
	select {
	case <-c.over:
	case <-time.After(d):
		return fmt.Errorf("does not end within %v", d)
	}
	if !c.bye.Load() {
		return errors.New("has ended without a word")
	}
	c.worker = nil
	return nil
}

// Counts returns the holds begun and the refusals so far, over all lives.
func (c *Client) Counts() (done, failed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doneBefore + c.done.Load(), c.failedBefore + c.failed.Load()
}
