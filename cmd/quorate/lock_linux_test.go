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

// What the command has started in turn ends too, though the kernel does not see to that.
func TestLockKilledTakesTheCommandsChildrenAlong(t *testing.T) {
	startNodes(t, 1)
	p := start(t, "lock", "x", "--", "sh", "-c", "sleep 60 & echo $!; wait")
	p.says("\n")
	pid, err := strconv.Atoi(strings.TrimSpace(p.out.String()))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0))
	p.signal(syscall.SIGKILL)
	// The child of the command has the output open, too.
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = syscall.Kill(pid, syscall.SIGKILL)
		assert.Fail(t, "the command's child goes on")
	}
}

// What a command leaves running on purpose, when it has ended by itself, stays.
func TestLockLeavesWhatTheCommandHasLeftRunning(t *testing.T) {
	startNodes(t, 1)
	p := start(t, "lock", "x", "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!")
	require.Equal(t, 0, p.status(), p.err.String())
	pid, err := strconv.Atoi(strings.TrimSpace(p.out.String()))
	require.NoError(t, err)
	assert.NoError(t, syscall.Kill(pid, syscall.SIGKILL), "it goes on")
}
