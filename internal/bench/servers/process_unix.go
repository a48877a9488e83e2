//go:build unix

package servers

import (
	"math"
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

// OpenFiles is how many files a process of this user may have open at most.
func OpenFiles() int {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) != nil {
		return math.MaxInt32
	}
	return int(min(uint64(files.Max), math.MaxInt32))
}
