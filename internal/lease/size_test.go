package lease

import (
	"testing"
	"unsafe"
)

// Five peers fill a size class of the allocator; a field more would cost every
// lease that is held 32 bytes.
func TestSizes(t *testing.T) {
	t.Parallel()
	if n := unsafe.Sizeof(peer{}); n > 64 {
		t.Errorf("a peer takes %d bytes, want 64 at most", n)
	}
}
