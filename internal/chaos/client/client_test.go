package client

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if isWorker, status := AsWorker(); isWorker {
		os.Exit(status)
	}
	goleak.VerifyTestMain(m)
}

// Two faults that meet both start a client that was killed. It runs once: a
// second process would hear nothing from the harness, and go on when the run
// has ended.
func TestClientIsStartedOnce(t *testing.T) {
	c := &Client{Dir: t.TempDir(), Present: func(addrs []string) []string { return addrs }}
	require.NoError(t, c.Start())
	first := c.worker
	require.NoError(t, c.Start())
	assert.True(t, first == c.worker, "it runs already")
	require.NoError(t, c.Relist(nil))
	assert.False(t, first == c.worker)
	assert.Equal(t, 2, c.lives)
	require.NoError(t, c.Kill())
}
