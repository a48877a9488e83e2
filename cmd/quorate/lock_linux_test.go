package main

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Without the process that renews it the lock will go to another: the command
// must not go on.
func TestLockKilledTakesTheCommandAlong(t *testing.T) {
	startNodes(t, 1)
	p := start(t, "lock", "x", "--", "sh", "-c", "echo $$; exec sleep 60")
	p.says("\n")
	pid, err := strconv.Atoi(strings.TrimSpace(p.out.String()))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0))
	p.signal(syscall.SIGKILL)
	// Wait also waits for whoever has the output open, and that is the command.
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		assert.Fail(t, "the command goes on")
	}
}
