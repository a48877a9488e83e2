package proxy

import (
	"runtime"
	"syscall"
	"time"
)

// sleepExactly is [time.Sleep] to within some microseconds. The runtime's own timers
// are late by up to a millisecond in a process that is otherwise idle. The
// thread stays locked until its timers have been told to be exact.
func sleepExactly(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const setTimerSlack = 29 // PR_SET_TIMERSLACK
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0)
	left := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&left, nil) // who calls looks at the clock again
}
