package lateness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLateness(t *testing.T) {
	t.Parallel()
	var l Lateness
	assert.Zero(t, l.Allow(12))
	l.most.Store(int64(20 * time.Millisecond))
	assert.Zero(t, l.Allow(12), "as on an idle machine")
	l.most.Store(int64(30 * time.Millisecond))
	assert.Equal(t, 360*time.Millisecond, l.Allow(12))
	l.Reset()
	assert.Zero(t, l.Allow(12))
}
