//go:build unix

package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a running command in a process group of its own, so that what it
// has started in turn is signalled too.
type Process struct {
	pid   int
	Done  chan int // gets its exit status
	tty   *os.File // our terminal, if the child has got it
	guard *guard   // nil: none could be started
	valid func() bool
}

// StartChild starts cmd. valid says whether a child that was stopped from the
// terminal may go on. The calling goroutine must stay locked to its thread
// until the child has ended.
func StartChild(cmd *exec.Cmd, valid func() bool) (*Process, error) {
	c := &Process{Done: make(chan int, 1), valid: valid}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	if err := hide(); err != nil {
		fmt.Fprintf(os.Stderr,
			"quorate: warning: the command can read this process's environment, with the nodes' passwords: %v\n", err)
	}
	// A group in the background cannot read from the terminal: the child would
	// stop at the first question it asks. So it gets the terminal if we have
	// it.
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		if fg, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP); err == nil && fg == unix.Getpgrp() {
			c.tty = tty
			cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, int(tty.Fd())
		} else {
			_ = tty.Close()
		}
	}
	gate, err := newGate(cmd)
	if err != nil {
		c.takeTerminal()
		return nil, err
	}
	defer gate.close()
	if err := cmd.Start(); err != nil {
		c.takeTerminal()
		return nil, err
	}
	gate.started()
	c.pid = cmd.Process.Pid
	if c.guard, err = startGuard(c.pid); err != nil {
		fmt.Fprintf(os.Stderr,
			"quorate: warning: if this process is killed, the processes of the command will keep running: %v\n", err)
	}
	gate.open()
	_ = cmd.Process.Release() // wait4 is ours: os/exec does not tell of a child that stops
	go c.wait()
	return c, nil
}

func (c *Process) wait() {
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(c.pid, &ws, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err == nil && ws.Stopped():
			c.stopped()
			continue
		}
		c.takeTerminal()
		switch {
		case err != nil:
			c.Done <- 1
		case ws.Signaled():
			c.Done <- 128 + int(ws.Signal())
		default:
			c.Done <- ws.ExitStatus()
		}
		return
	}
}

// stopped follows a child that was stopped from the terminal (Ctrl-Z): the
// shell must get its terminal back. We stop too, and with us the renewal; after
// the lease has ended the child is not let go on.
func (c *Process) stopped() {
	if c.tty == nil {
		return
	}
	c.setForeground(unix.Getpgrp())
	// Note: to kill and go on is wrong. The signal may stop another thread
	// first, and this one would let the child go on before it stops.
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	_ = syscall.Kill(0, syscall.SIGSTOP)
	<-continued
	signal.Stop(continued)
	if !c.valid() {
		return // the loss is reported at once, and ends it
	}
	if fg, err := unix.IoctlGetInt(int(c.tty.Fd()), unix.TIOCGPGRP); err == nil && fg == unix.Getpgrp() {
		c.setForeground(c.pid)
	}
	_ = syscall.Kill(-c.pid, syscall.SIGCONT)
}

// Dismiss ends the guard: the command has ended, and this process with it in
// good order.
func (c *Process) Dismiss() {
	if c.guard != nil {
		c.guard.dismiss()
	}
}

// takeTerminal ends the child's use of the terminal.
func (c *Process) takeTerminal() {
	if c.tty == nil {
		return
	}
	c.setForeground(unix.Getpgrp())
	_ = c.tty.Close()
	c.tty = nil
}

// setForeground gives the terminal to a group, from the background too.
func (c *Process) setForeground(group int) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(c.tty.Fd()), unix.TIOCSPGRP, group)
}

// Signal sends a signal to all of the group.
func (c *Process) Signal(s os.Signal) { _ = syscall.Kill(-c.pid, s.(syscall.Signal)) }

// Terminate asks all of the group to end, also those that are stopped.
func (c *Process) Terminate() {
	c.Signal(syscall.SIGTERM)
	c.Signal(syscall.SIGCONT)
}

func (c *Process) Kill() { c.Signal(syscall.SIGKILL) }

// Finish is for after the child's own end: what it has left behind in its group
// has until kill, like the child.
func (c *Process) Finish(kill <-chan time.Time) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for syscall.Kill(-c.pid, 0) == nil {
		select {
		case <-tick.C:
		case <-kill:
			c.Kill()
			return
		}
	}
}

// SignalStatus is the exit status that shells give for a signal.
func SignalStatus(s os.Signal) int { return 128 + int(s.(syscall.Signal)) }
