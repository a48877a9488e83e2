//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

// child is a running command. Without process groups and signals, only the
// command itself is ended, and at once.
type child struct {
	process *os.Process
	done    chan int // gets its exit status
}

func startChild(cmd *exec.Cmd, _ func() bool) (*child, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{process: cmd.Process, done: make(chan int, 1)}
	go func() {
		err := cmd.Wait()
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			c.done <- 1
			return
		}
		c.done <- cmd.ProcessState.ExitCode()
	}()
	return c, nil
}

func (c *child) signal(os.Signal)        { c.kill() }
func (c *child) terminate()              { c.kill() }
func (c *child) kill()                   { _ = c.process.Kill() }
func (c *child) dismiss()                {}
func (c *child) finish(<-chan time.Time) {}
func signalStatus(os.Signal) int         { return 130 }
