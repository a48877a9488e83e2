package main

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

	"github.com/quorate/quorate/internal/testkit/worker"
)

// client is a client process, in its several lives.
type client struct {
	terms terms
	id    int
	dir   string
	list  func(addrs []string) []string // see present
	lives int

	// Of lives that are over, and of this one.
	doneBefore, failedBefore int64
	done, failed             atomic.Int64

	mu      sync.Mutex     // one change of state at a time
	worker  *worker.Worker // of this life; nil where there is none
	over    chan struct{}  // closed when it has ended and was judged
	bye     *atomic.Bool   // it has said so, or is being killed: its end is no surprise
	calm    bool
	frozen  bool         // no fault lets it go on
	crashes atomic.Int64 // ends that were a surprise
	listed  int64        // when it got its list of nodes
	lists   map[string]rivalList
}

// rivalList is what a rival has in one of its lives.
type rivalList struct {
	addrs []string
	at    int64 // when the harness gave it out: the set that counted then
}

// start begins a life, unless another fault has done so since the client was
// killed.
func (c *client) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.worker != nil {
		return nil
	}
	return c.launch()
}

// relist kills the process, and starts it with another list of nodes.
func (c *client) relist(addrs []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.end(); err != nil {
		return err
	}
	c.terms.Addrs, c.listed = addrs, now()
	return c.launch()
}

// keepUp starts the process again if its list is outgrown: it may have started
// with that, and then knows no set.
func (c *client) keepUp() error {
	c.mu.Lock()
	old := c.terms.Addrs
	c.mu.Unlock()
	if addrs := c.list(old); !slices.Equal(addrs, old) {
		return c.relist(addrs)
	}
	return nil
}

// freeze stops the process until thaw, whatever other faults do.
func (c *client) freeze() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.worker == nil {
		return nil
	}
	c.frozen = true
	return c.worker.Signal(syscall.SIGSTOP)
}

// thaw lets it go on.
func (c *client) thaw() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = false
	if c.worker == nil {
		return nil
	}
	return c.worker.Signal(syscall.SIGCONT)
}

// launch begins a life.
func (c *client) launch() error {
	tm := c.terms
	tm.Addrs = c.list(tm.Addrs)
	c.lives++
	tm.Prefix = fmt.Sprintf("c%d.%d", c.id, c.lives)
	tm.Log = filepath.Join(c.dir, tm.Prefix+".log")
	tm.Calm = c.calm
	if c.lists == nil {
		c.lists = map[string]rivalList{}
	}
	c.lists[tm.Prefix] = rivalList{tm.Addrs, c.listed}
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
			c.crashes.Add(1)
		}
	}()
	return nil
}

// take notes what the process says.
func (c *client) take(line string, bye *atomic.Bool) {
	var done, failed int64
	switch _, err := fmt.Sscanf(line, sayDone+" %d %d", &done, &failed); {
	case err == nil:
		c.done.Store(done)
		c.failed.Store(failed)
	case line == sayBye:
		bye.Store(true)
	}
}

// kill ends the process as kill -9 does.
func (c *client) kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end()
}

func (c *client) end() error {
	if c.worker == nil {
		return nil
	}
	c.bye.Store(true)
	err := c.worker.Kill()
	<-c.over
	c.worker, c.frozen = nil, false
	return err
}

func (c *client) signal(s syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.worker == nil || c.frozen {
		return nil
	}
	return c.worker.Signal(s)
}

// beCalm tells it, and all its later lives, that all faults have ended.
func (c *client) beCalm() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calm = true
	if c.worker == nil {
		return errors.New("is not running")
	}
	return c.worker.Tell(sayCalm)
}

// finish has it ask for everything once more and close, and fails if it has not
// within d.
func (c *client) finish(d time.Duration) error {
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

// counts are the holds begun and the refusals so far, over all lives.
func (c *client) counts() (done, failed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doneBefore + c.done.Load(), c.failedBefore + c.failed.Load()
}
