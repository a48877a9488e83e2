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

// Client is a client process, in its several lives.
type Client struct {
	Terms   Terms
	ID      int
	Dir     string
	Present func(addrs []string) []string // what it starts with, for the list of before; see fleet.Present
	lives   int

	// Of lives that are over, and of this one.
	doneBefore, failedBefore int64
	done, failed             atomic.Int64

	mu      sync.Mutex     // one change of state at a time
	worker  *worker.Worker // of this life; nil where there is none
	over    chan struct{}  // closed when it has ended and was judged
	bye     *atomic.Bool   // it has said so, or is being killed: its end is no surprise
	calm    bool
	frozen  bool         // no fault lets it go on
	Crashes atomic.Int64 // ends that were a surprise
	listed  int64        // when it got its list of nodes
	Lists   map[string]List
}

// Start begins a life, unless another fault has done so since the client was
// killed.
func (c *Client) Start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.worker != nil {
		return nil
	}
	return c.launch()
}

// Relist kills the process, and starts it with another list of nodes.
func (c *Client) Relist(addrs []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.end(); err != nil {
		return err
	}
	c.Terms.Addrs, c.listed = addrs, record.Now()
	return c.launch()
}

// KeepUp starts the process again if its list is outgrown: it may have started
// with that, and then knows no set.
func (c *Client) KeepUp() error {
	c.mu.Lock()
	old := c.Terms.Addrs
	c.mu.Unlock()
	if addrs := c.Present(old); !slices.Equal(addrs, old) {
		return c.Relist(addrs)
	}
	return nil
}

// Freeze stops the process until thaw, whatever other faults do.
func (c *Client) Freeze() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.worker == nil {
		return nil
	}
	c.frozen = true
	return c.worker.Signal(syscall.SIGSTOP)
}

// Thaw lets it go on.
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's Ctrl-C is the harness's to handle
	c.doneBefore, c.failedBefore = c.doneBefore+c.done.Swap(0), c.failedBefore+c.failed.Swap(0)
	bye, over := &atomic.Bool{}, make(chan struct{})
	w, err := worker.Start(cmd, func(line string) { c.take(line, bye) })
	if err != nil {
		return err
	}
	c.worker, c.over, c.bye = w, over, bye
	go func() {
		defer close(over)
		<-w.Done() // how it ended shows in what it said
		if !bye.Load() {
			c.Crashes.Add(1)
		}
	}()
	return nil
}

// take notes what the process says.
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

// Kill ends the process as kill -9 does.
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

// BeCalm tells it, and all its later lives, that all faults have ended.
func (c *Client) BeCalm() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calm = true
	if c.worker == nil {
		return errors.New("is not running")
	}
	return c.worker.Tell(sayCalm)
}

// Finish has it ask for everything once more and close, and fails if it has not
// within d.
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

// Counts are the holds begun and the refusals so far, over all lives.
func (c *Client) Counts() (done, failed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doneBefore + c.done.Load(), c.failedBefore + c.failed.Load()
}
