package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two faults that meet both start a client that was killed. It runs once: a
// second process would hear nothing from the harness, and go on when the run
// has ended.
func TestClientIsStartedOnce(t *testing.T) {
	c := &client{dir: t.TempDir(), list: func(addrs []string) []string { return addrs }}
	require.NoError(t, c.start())
	first := c.worker
	require.NoError(t, c.start())
	assert.True(t, first == c.worker, "it runs already")
	require.NoError(t, c.relist(nil))
	assert.False(t, first == c.worker)
	assert.Equal(t, 2, c.lives)
	require.NoError(t, c.kill())
}
