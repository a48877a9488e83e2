package wake

// This file owns how a suspended machine is noticed on Linux: by how long it
// slept, and by a file that becomes readable when it wakes up.

import (
	"errors"
	"math"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Of the kernel's interface, what package syscall does not name.
const (
	clockRealtime  = 0
	clockMonotonic = 1
	clockBoottime  = 7

	timerAbsolute    = 1 << 0
	timerCancelOnSet = 1 << 1
)

// slept is how much CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC. The two cannot
// be read at one moment; of a few attempts the quickest is the most exact one.
// The result is taken only if the three reads lay within a millisecond: a
// goroutine that was interrupted between them would take the interruption for
// sleep.
func slept() (d time.Duration, ok bool) {
	took := time.Duration(math.MaxInt64)
	for range 10 {
		before, ok1 := readClock(clockMonotonic)
		boot, ok2 := readClock(clockBoottime)
		after, ok3 := readClock(clockMonotonic)
		if !ok1 || !ok2 || !ok3 {
			return 0, false
		}
		if after-before < took {
			took, d = after-before, boot-before-(after-before)/2
		}
		if took < steady/10 {
			break
		}
	}
	return d, took < steady
}

// RawSyscall, since the call does not block.
func readClock(id uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}

// Waker tells when the machine wakes up. It is a timer of the kernel that is
// cancelled when the wall clock is set, which a wake-up does. It is set to a
// time that does not come; where times have 32 bits to 2038, and from then on
// an idle holder's context ends late. A read of it needs no thread.
type Waker struct{ f *os.File }

// NewWaker returns one that never tells anything where the kernel has no such
// timer, as in some sandboxes. Clock does not need it.
func NewWaker() Waker {
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockRealtime,
		syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return Waker{}
	}
	f := os.NewFile(fd, "timerfd")
	set := struct{ interval, value syscall.Timespec }{}
	set.value.Sec = math.MaxInt32
	if unsafe.Sizeof(set.value.Sec) == 8 {
		set.value.Sec <<= 8 // The kernel takes what is beyond its last nanosecond for that.
	}
	if _, _, errno = syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, fd, timerAbsolute|timerCancelOnSet,
		uintptr(unsafe.Pointer(&set)), 0, 0, 0); errno != 0 {
		_ = f.Close()
		return Waker{}
	}
	return Waker{f}
}

// Wait waits for the next wake-up, and reports false after Close. ECANCELED is
// the kernel's word that the clock was set. If an operator sets it the
// schedulers wake as well, and find nothing due.
func (w Waker) Wait() bool {
	if w.f == nil {
		return false
	}
	var expirations [8]byte
	_, err := w.f.Read(expirations[:])
	return errors.Is(err, syscall.ECANCELED)
}

func (w Waker) Close() {
	if w.f != nil {
		_ = w.f.Close()
	}
}
