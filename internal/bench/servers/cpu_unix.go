//go:build unix

package servers

import (
	"syscall"
	"time"
)

// OwnCPU returns the processor time that this process has used, including time
// in the kernel.
func OwnCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
