package wake

import (
	"math"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A waker that expires wakes nothing from then on. Times of 64 bits have no
// last second in 2038.
func TestWakerDoesNotExpire(t *testing.T) {
	t.Parallel()
	w := NewWaker()
	if w.f == nil {
		t.Skip("this kernel has no such timer")
	}
	defer w.Close()
	raw, err := w.f.SyscallConn()
	require.NoError(t, err)
	left := struct{ interval, value syscall.Timespec }{}
	require.NoError(t, raw.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_GETTIME, fd, uintptr(unsafe.Pointer(&left)), 0)
		assert.Zero(t, errno)
	}))
	least := int64(math.MaxInt32) - time.Now().Unix() - 60
	if unsafe.Sizeof(left.value.Sec) == 8 {
		least = 200 * 365 * 24 * 3600
	}
	assert.Greater(t, int64(left.value.Sec), least)
}
