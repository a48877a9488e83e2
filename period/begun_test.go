package period

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/setup"
)

// A period that is ahead of the nodes' time by the skew has begun, by more it
// has not.
func TestBegun(t *testing.T) {
	t.Parallel()
	const skew = time.Second
	p := &Period{spec: &core.Spec{Set: &setup.Settings{Skew: skew}}}
	now := time.UnixMicro(1e15)
	last := now.Add(skew)
	assert.Equal(t, last, p.begun(last.UnixMicro(), now))
	assert.Equal(t, time.UnixMicro(0), p.begun(last.Add(time.Microsecond).UnixMicro(), now))
}
