//go:build linux

package e2e_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/leader"
)

func init() { modes["lead"] = (&candidate{}).obey }

// candidate is a worker that campaigns. It obeys
//
//	lead run ID       campaigns, until the command to end
//	lead observe      observes the leader, as long as it campaigns
//	lead ignore       observes no more: ignores
//	lead resign       ends its term, and campaigns again
//	lead transfer ID  hands over to the candidate with that ID or, if that fails, as resign does
//	lead write FILE FENCED
//	                  writes to a store with its newest term: wrote TERM, or refused TERM
//	lead end          resigns and campaigns no more: ended
//
// and tells at any time, as its log, with CLOCK_MONOTONIC in nanoseconds
//
//	up TERM AT        a term has begun, at the latest then
//	down TERM AT      it has ended, or its lease has, at the earliest then
//	sees TERM         another term has been observed
type candidate struct {
	e      *leader.Election
	ctx    context.Context
	cancel context.CancelFunc
	ignore func() // ends the observation; nil where there is none
	over   chan error
	resign chan struct{}
	term   atomic.Uint64
}

func (c *candidate) obey(q *quorate.Quorum, name string, args []string) error {
	switch args[0] {
	case "run":
		c.ctx, c.cancel = context.WithCancel(context.Background())
		c.over, c.resign = make(chan error, 1), make(chan struct{})
		c.e = leader.New(q, name, leader.WithID(strings.Join(args[1:], "")))
		go func() { c.over <- c.e.Run(c.ctx, leader.Callbacks{OnStartedLeading: c.lead}) }()
	case "observe":
		ctx, cancel := context.WithCancel(c.ctx)
		over := make(chan struct{})
		c.ignore = func() { cancel(); <-over }
		go func() {
			defer close(over)
			var last uint64
			for l, err := range leader.New(q, name).Observe(ctx) {
				if err == nil && l.Term != last {
					last = l.Term
					fmt.Println("sees", last)
				}
			}
		}()
	case "ignore":
		if c.ignore != nil {
			c.ignore()
		}
		fmt.Println("ignores")
	case "transfer":
		ctx, cancel := context.WithTimeout(c.ctx, time.Second)
		defer cancel()
		if c.e.TransferTo(ctx, args[1]) != nil {
			c.leave()
		}
	case "resign":
		c.leave()
	case "write":
		ok, err := write(args[1], c.term.Load(), args[2] == "true")
		switch {
		case err != nil:
			return err
		case ok:
			fmt.Println("wrote", c.term.Load())
		default:
			fmt.Println("refused", c.term.Load())
		}
	case "end":
		c.cancel()
		if err := <-c.over; err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
			return fmt.Errorf("Run has ended: %w", err)
		}
		fmt.Println("ended")
	}
	return nil
}

// leave has the leader end its term, unless it loses it.
func (c *candidate) leave() {
	select {
	case c.resign <- struct{}{}:
	case <-time.After(time.Second):
	}
}

func (c *candidate) lead(ctx context.Context, lease quorate.Lease) {
	c.term.Store(lease.Token())
	fmt.Println("up", lease.Token(), monotonic())
	select {
	case <-ctx.Done():
	case <-c.resign:
	}
	// A process that was stopped wakes up after its lease has ended.
	now := monotonic()
	fmt.Println("down", lease.Token(), min(now, now+int64(time.Until(lease.ValidUntil()))))
}

// monotonic is the machine's CLOCK_MONOTONIC, which all processes share.
func monotonic() int64 {
	const clockMonotonic = 1
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic,
		uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic(errno)
	}
	return ts.Nano()
}

// write is a store that several processes write to: a file of the terms that it
// was written with, in order. If it is fenced it remembers the highest term,
// and refuses a lower one.
func write(file string, term uint64, fenced bool) (bool, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return false, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return false, err
	}
	for _, line := range strings.Fields(string(text)) {
		before, err := strconv.ParseUint(line, 10, 64)
		if err != nil {
			return false, err
		}
		if fenced && term < before {
			return false, nil
		}
	}
	_, err = fmt.Fprintln(f, term)
	return err == nil, err
}
