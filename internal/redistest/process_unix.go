//go:build unix && !linux

package redistest

import (
	"os"
	"os/exec"
	"syscall"
)

// dieWithParent can do nothing here: a server outlives a process that does not come to Close.
func dieWithParent(*exec.Cmd) {}

func stopProcess(p *os.Process) error     { return p.Signal(syscall.SIGSTOP) }
func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
