package process_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/testkit/process"
)

// roleEnv makes this test binary a child: one that counts, one that ends, or a
// parent of a child that is stopped.
const roleEnv = "QUORATE_PROCESS_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "counts":
		for i := 0; ; i++ {
			fmt.Println(i)
		}
	case "fails":
		os.Exit(3)
	case "parent":
		p, err := process.Start(child("counts"))
		if err == nil {
			err = p.Stop()
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.Pid())
		select {} // until it is killed
	}
	goleak.VerifyTestMain(m)
}

func child(role string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	return cmd
}

// within waits for an event. The time only guards against hanging.
func within(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		require.FailNow(t, "it does not happen")
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	_, err := process.Start(exec.Command("/no such program"))
	require.Error(t, err)
	var none *process.Process
	assert.False(t, none.Running())
}

func TestErr(t *testing.T) {
	t.Parallel()
	p, err := process.Start(child("fails"))
	require.NoError(t, err)
	within(t, p.Exited())
	var exit *exec.ExitError
	require.ErrorAs(t, p.Err(), &exit)
	assert.Equal(t, 3, exit.ExitCode())
	assert.False(t, p.Running())
	assert.NoError(t, p.Kill(), "it has ended")
}

// A process that is stopped does nothing until it is continued, and can be
// killed meanwhile.
func TestStop(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be stopped there")
	}
	cmd := child("counts")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	p, err := process.Start(cmd)
	require.NoError(t, err)
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.NoError(t, p.Stop())
	assert.True(t, p.Running())
	require.NoError(t, p.Continue())
	for range 100_000 { // more than a pipe and a buffer keep
		require.True(t, lines.Scan())
	}
	require.NoError(t, p.Stop())
	require.NoError(t, p.Kill())
	assert.False(t, p.Running())
	assert.Error(t, p.Err())
	assert.ErrorIs(t, p.Stop(), os.ErrProcessDone)
}

// A child outlives the goroutine and the thread that asked for it.
func TestChildOutlivesTheThreadThatAsked(t *testing.T) {
	t.Parallel()
	cmd := child("counts")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	started := make(chan *process.Process)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		p, err := process.Start(cmd)
		assert.NoError(t, err)
		started <- p
	}()
	p := <-started
	require.NotNil(t, p)
	lines := bufio.NewScanner(out)
	for range 100_000 {
		require.True(t, lines.Scan())
	}
	require.NoError(t, p.Kill())
}

// A parent that is killed takes its child along, also a child that is stopped.
func TestChildDiesWithItsParent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills the children of a dead process")
	}
	cmd := child("parent")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	parent, err := process.Start(cmd)
	require.NoError(t, err)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscan(strings.TrimSpace(line), &pid)
	require.NoError(t, err, line)
	require.NoError(t, parent.Kill())
	assert.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, 20*time.Second, time.Millisecond)
	assert.NoError(t, parent.Kill())
}
