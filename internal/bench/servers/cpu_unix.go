//go:build unix

package servers

import (
	"syscall"
	"time"
)

// OwnCPU is the processor time that this process has used, in the kernel too.
func OwnCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
