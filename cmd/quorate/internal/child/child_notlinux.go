//go:build unix && !linux

package child

import "syscall"

// dieWithParent can do nothing here: a child outlives us if we are killed.
func dieWithParent(*syscall.SysProcAttr) {}

// hide has nothing to do: there is no /proc that shows a process's environment
// to its child.
func hide() error { return nil }

func systemSignals() []syscall.Signal { return nil }
