package main

import (
	"os/exec"
	"syscall"
)

// own makes a process end with the harness, and not with the terminal's Ctrl-C,
// which is the harness's to handle.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
