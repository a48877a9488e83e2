//go:build unix && !linux

package process

import (
	"os"
	"os/exec"
	"syscall"
)

// dieWithParent can do nothing here: a child outlives a process that does not
// end it.
func dieWithParent(*exec.Cmd) {}

func stopProcess(p *os.Process) error     { return p.Signal(syscall.SIGSTOP) }
func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
