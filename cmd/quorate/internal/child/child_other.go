//go:build !unix

package child

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

// Process is a running command. Without process groups and signals, only the
// command itself is ended, and at once.
type Process struct {
	process *os.Process
	Done    chan int // gets its exit status
}

func StartChild(cmd *exec.Cmd, _ func() bool) (*Process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &Process{process: cmd.Process, Done: make(chan int, 1)}
	go func() {
		err := cmd.Wait()
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			c.Done <- 1
			return
		}
		c.Done <- cmd.ProcessState.ExitCode()
	}()
	return c, nil
}

func (c *Process) Signal(os.Signal)        { c.Kill() }
func (c *Process) Terminate()              { c.Kill() }
func (c *Process) Pass(os.Signal)          {}
func Passed() []os.Signal                  { return nil }
func (c *Process) Kill()                   { _ = c.process.Kill() }
func (c *Process) Dismiss()                {}
func (c *Process) Finish(<-chan time.Time) {}
func SignalStatus(os.Signal) int           { return 130 }
