package child

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill the child when we die in whatever way: with
// us its lock is as good as gone.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// hide makes this process not dumpable. Its environment, memory and open files
// in /proc then belong to root, so the child, which has the same user, cannot
// read the nodes' passwords there.
//
// The child does not inherit this: exec makes a process dumpable again.
func hide() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// systemSignals are those that only Linux has: the power supply fails, and the
// real-time signals, of which the C library keeps the first three.
func systemSignals() []syscall.Signal {
	all := []syscall.Signal{syscall.SIGPWR}
	for s := syscall.Signal(35); s <= 64; s++ {
		all = append(all, s)
	}
	return all
}
