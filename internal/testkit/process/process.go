// Package process starts child processes for tests, benchmarks and
// demonstrations, and ends them in every way a process can end or stand still.
package process

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// Process is one life of a child process. It owns a goroutine, and on Linux an
// OS thread, until the process has ended. Its methods may be called
// concurrently.
//
// On Linux a child ends with this process, in whatever way that ends, also
// while the child is stopped. Elsewhere it outlives a process that does not end
// it.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended and was waited for
}

// Start starts cmd, which must not have been started. SysProcAttr of cmd is
// kept, except for what ends the child with this process.
//
// Invariant: the thread that starts a child lives until the child has ended.
// Note: Here is an incorrect implementation:
//
//	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
//	cmd.Start()
//
// The kernel sends that signal when the *thread* that forked ends, not when the
// process does. The Go runtime ends threads as it likes (a goroutine that exits
// while locked to its thread takes the thread along), and the child would die
// in the middle of a test for no visible reason. So the goroutine that starts
// the child is locked to its thread, and waits for the child.
func Start(cmd *exec.Cmd) (*Process, error) {
	dieWithParent(cmd)
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.exited)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // Err has it
		}
	}()
	if err := <-started; err != nil {
		<-p.exited
		return nil, err
	}
	return p, nil
}

// Pid is its process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Running says whether the process has not ended. A process that is stopped is
// running. A nil Process is not.
func (p *Process) Running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Err is how the process has ended: nil for a status of 0. It must not be
// called before [Process.Exited] is closed.
func (p *Process) Err() error {
	if s := p.cmd.ProcessState; !s.Success() {
		return &exec.ExitError{ProcessState: s}
	}
	return nil
}

// Kill ends the process as kill -9 does, stopped or not, and returns when it is
// gone. One that has ended is left alone.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Stop stops the process with SIGSTOP, and returns when none of its threads
// runs (on Linux, where the system shows that): the signal alone only asks for
// it, and what is sent to the process right after may still be carried out.
func (p *Process) Stop() error { return stopProcess(p.cmd.Process) }

// Continue lets a process that was stopped go on.
func (p *Process) Continue() error { return continueProcess(p.cmd.Process) }
