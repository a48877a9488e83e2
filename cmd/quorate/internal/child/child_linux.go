package child

import "syscall"

// dieWithParent has the kernel kill the child when we die in whatever way: with
// us its lock is as good as gone.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
