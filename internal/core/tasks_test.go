package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Close waits for what has begun, and nothing begins after that.
func TestNoTaskBeginsAfterTheEnd(t *testing.T) {
	var ts tasks
	ran := make(chan struct{})
	assert.True(t, ts.start(func() { close(ran) }))
	ts.end()
	assert.False(t, ts.start(func() { t.Error("it runs") }))
	ts.running.Wait()
	<-ran
}
