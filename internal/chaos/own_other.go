//go:build !linux

package main

import (
	"os/exec"
	"syscall"
)

// own keeps the terminal's Ctrl-C, which is the harness's to handle, from a process.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
