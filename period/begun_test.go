package period

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// A record that is undecided does not say that there has been no run.
func TestLastOfAnUndecidedRecord(t *testing.T) {
	t.Parallel()
	_, err := decided(core.Record{Undecided: true})
	assert.ErrorIs(t, err, fault.ErrHeld)
	last, err := decided(core.Record{})
	assert.NoError(t, err)
	assert.Zero(t, last)
}

// A period that is ahead of the nodes' time by the skew has begun, by more it
// has not.
func TestBegun(t *testing.T) {
	t.Parallel()
	const skew = time.Second
	now := time.UnixMicro(1e15)
	last := now.Add(skew)
	assert.Equal(t, last, begun(last.UnixMicro(), now, skew))
	assert.Equal(t, time.UnixMicro(0), begun(last.Add(time.Microsecond).UnixMicro(), now, skew))
}
