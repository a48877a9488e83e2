package main

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/embedded"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// asCommand in the environment makes the test binary the command itself, so
// that tests run real processes of it.
const asCommand = "QUORATE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	for _, name := range []string{"QUORATE_NODES", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG"} {
		_ = os.Unsetenv(name)
	}
	_ = os.Setenv(asCommand, "1") // for all that is started from here
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(redistest.Share(m))
}

// startNodes starts nodes that all commands of the test use.
func startNodes(t *testing.T, n int) *embedded.Nodes {
	t.Helper()
	ns := ownNodes(t, n)
	t.Setenv("QUORATE_NODES", strings.Join(ns.URLs(), ","))
	return ns
}

// ownNodes starts nodes for a parallel test, which names them to its commands.
func ownNodes(t *testing.T, n int) *embedded.Nodes {
	t.Helper()
	ns, err := embedded.Start(n)
	require.NoError(t, err)
	t.Cleanup(ns.Close)
	return ns
}

// proc is a process of the command under test.
type proc struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err output
	ended    chan struct{}
}

// start runs the command in a process of its own. It fails the test if that
// lasts longer than is reasonable on a busy machine.
func start(t *testing.T, args ...string) *proc {
	t.Helper()
	return startWith(t, nil, args...)
}

func startWith(t *testing.T, env []string, args ...string) *proc {
	t.Helper()
	p := &proc{t: t, cmd: exec.Command(os.Args[0], args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // no harm when it has ended
		<-p.ended
	})
	return p
}

// startTry starts a command that does not wait for the lock, again while too
// few nodes have answered it: those of a busy machine may answer too late.
func startTry(t *testing.T, args ...string) (p *proc) {
	t.Helper()
	require.True(t, e2e.Eventually(func() bool {
		p = start(t, args...)
		return p.status() != cli.ExitNoQuorum
	}), &p.err)
	return p
}

// status waits for the end and returns the exit status.
func (p *proc) status() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(time.Minute): // a demo waits for its workers for a quarter of one
		p.t.Fatalf("it does not end; it said %q and %q", p.out.String(), p.err.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// says waits until the standard output contains what.
func (p *proc) says(what string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.out.String(), what) },
		20*time.Second, 5*time.Millisecond,
		"it never said %q, but %q; errors: %q", what, &p.out, &p.err)
}

func (p *proc) signal(s os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// output is a buffer that may be read while it is written.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
