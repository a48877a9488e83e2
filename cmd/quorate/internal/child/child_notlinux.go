//go:build unix && !linux

package child

import "syscall"

// dieWithParent can do nothing here: a child outlives us if we are killed.
func dieWithParent(*syscall.SysProcAttr) {}
