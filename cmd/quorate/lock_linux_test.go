package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/child"
)

// Without the process that renews it the lock will go to another: the command
// must not go on. Nor must what it has started, though the kernel sees to the
// command alone.
func TestLockKilledTakesTheCommandAlong(t *testing.T) {
	for what, script := range map[string]string{
		"the command":         "echo $$; exec sleep 60",
		"the command's child": "sleep 60 & echo $!; wait",
	} {
		t.Run(what, func(t *testing.T) {
			startNodes(t, 1)
			p := start(t, "lock", "x", "--", "sh", "-c", script)
			p.says("\n")
			pid, err := strconv.Atoi(strings.TrimSpace(p.out.String()))
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(pid, 0))
			p.signal(syscall.SIGKILL)
			// Wait also waits for each process that has the output open, and
			// that is this one.
			select {
			case <-p.ended:
			case <-time.After(10 * time.Second):
				_ = syscall.Kill(pid, syscall.SIGKILL)
				assert.Fail(t, what+" goes on")
			}
		})
	}
}

// A process that is killed between the start of the command and the start of
// its guard leaves no command behind: the command has not begun.
func TestLockKilledBeforeTheGuardExists(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	for _, open := range []bool{true, false} {
		var out bytes.Buffer
		c := exec.Command(os.Args[0], child.GateName, "--", "3", sh, "sh", "-c", "echo begins")
		c.Stdout, c.ExtraFiles = &out, []*os.File{r}
		require.NoError(t, c.Start())
		if open {
			_, err := w.WriteString("x")
			require.NoError(t, err)
		} else {
			require.NoError(t, w.Close()) // as the end of the process does
		}
		assert.Equal(t, open, c.Wait() == nil)
		assert.Equal(t, open, out.String() == "begins\n")
	}
	require.NoError(t, r.Close())
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

// A command gets the files that this process was started with, and no others:
// so it gets a jobserver of make, or the socket of a service manager.
func TestCommandGetsTheOpenFiles(t *testing.T) {
	startNodes(t, 1)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	files := func(argv ...string) string {
		c := exec.Command(argv[0], argv[1:]...)
		var out bytes.Buffer
		c.Stdout, c.ExtraFiles = &out, []*os.File{w}
		require.NoError(t, c.Run())
		return out.String()
	}
	script := []string{"sh", "-c", "echo here >&3; ls /proc/self/fd"}
	want := files(script...)
	assert.Equal(t, want, files(append([]string{os.Args[0], "lock", "x", "--"}, script...)...))
	require.NoError(t, w.Close())
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "here\nhere\n", string(got))
}
