package transport

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPauseAfterAConnection(t *testing.T) {
	t.Parallel()
	const long = 400 * time.Millisecond
	for _, c := range []struct {
		what             string
		up               time.Duration
		served, replaced bool
		next             time.Duration
	}{
		{"it was up for long", 2 * maxBackoff, false, false, 0},
		{"it answered nothing", time.Millisecond, false, false, long},
		{"it answered", 50 * time.Millisecond, true, false, 50 * time.Millisecond},
		{"the owner wants another one", 300 * time.Millisecond, true, true, 0},
		{"the owner wants another one at once", time.Millisecond, false, true, 0},
	} {
		b := backoff{next: long}
		b.lasted(c.up, c.served, c.replaced)
		assert.Equal(t, c.next, b.next, c.what)
	}
}
