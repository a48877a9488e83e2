package wake

import (
	"errors"
	"math"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Constants of the kernel's interface that package syscall does not have.
const (
	clockRealtime  = 0
	clockMonotonic = 1
	clockBoottime  = 7

	timerAbsolute    = 1 << 0
	timerCancelOnSet = 1 << 1
)

// slept returns how far CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC. The two
// clocks cannot be read at the same moment, so slept tries several times and
// uses the quickest try, which is the most exact. ok is false unless its three
// reads took less than a millisecond: if the goroutine was interrupted between
// the reads, the interruption would count as sleep.
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

// readClock uses RawSyscall because the call does not block.
func readClock(id uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}

// Waker reports when the machine wakes up. It is a kernel timer that is
// cancelled whenever the wall clock is set, and the kernel sets the wall clock
// after a suspension. The timer is set to a time that never comes. On systems
// with 32-bit times that is 2038; after that a suspension is not noticed at
// once, so the context of an idle holder ends late. Waiting for the timer does
// not occupy a thread.
type Waker struct{ f *os.File }

// NewWaker returns a Waker. If the kernel has no such timer, as in some
// sandboxes, Wait returns false at once. Clock does not need a Waker.
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
		set.value.Sec <<= 8 // The kernel clamps a later time to its maximum.
	}
	if _, _, errno = syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, fd, timerAbsolute|timerCancelOnSet,
		uintptr(unsafe.Pointer(&set)), 0, 0, 0); errno != 0 {
		_ = f.Close()
		return Waker{}
	}
	return Waker{f}
}

// Wait waits for the next wake-up. It returns false after Close. The kernel
// reports a set clock by ECANCELED. If an operator sets the clock, the
// schedulers are woken too and find nothing due.
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
