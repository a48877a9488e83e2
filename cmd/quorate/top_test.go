package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// onTerminal is a process of the command that has a terminal.
type onTerminal struct {
	*proc
	terminal *os.File
	columns  uint16
}

func startOnTerminal(t *testing.T, args ...string) *onTerminal {
	t.Helper()
	return onATerminal(t, exec.Command(os.Args[0], args...))
}

// onATerminal starts a program that has a terminal.
func onATerminal(t *testing.T, cmd *exec.Cmd) *onTerminal {
	t.Helper()
	p := &proc{t: t, cmd: cmd, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	terminal, err := pty.StartWithSize(p.cmd, &pty.Winsize{Rows: 40, Cols: 150})
	require.NoError(t, err)
	go func() {
		defer close(p.ended)
		_, _ = io.Copy(&p.out, terminal) // until the process has ended
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		_ = terminal.Close()
	})
	return &onTerminal{p, terminal, 150}
}

// shows waits until what is on the terminal, blanks apart. What stays there is
// not written again until the terminal has another size.
func (p *onTerminal) shows(what string) {
	p.t.Helper()
	blank := strings.NewReplacer(" ", "", "\r", "", "\n", "")
	require.Eventually(p.t, func() bool {
		if strings.Contains(blank.Replace(ansi.Strip(p.out.String())), blank.Replace(what)) {
			return true
		}
		p.columns ^= 1
		require.NoError(p.t, pty.Setsize(p.terminal, &pty.Winsize{Rows: 40, Cols: p.columns}))
		return false
	}, 20*time.Second, 100*time.Millisecond, "it never showed %q", what)
}

func (p *onTerminal) press(keys string) {
	p.t.Helper()
	_, err := p.terminal.WriteString(keys)
	require.NoError(p.t, err)
}

// On a terminal names are shown, keys are heard, and q leaves the terminal as
// it was.
func TestTop(t *testing.T) {
	startNodes(t, 3)
	h := start(t, "lock", "job\x1b[2J", "--owner", "first", "--", "sh", "-c", "echo in; sleep 60")
	h.says("in")
	p := startOnTerminal(t, "top", "jo*", "--every", "100ms")
	p.shows("3 of 3 nodes are ready, 2 are needed")
	p.shows(`job\x1b[2J mutex process`)
	p.press("\r")
	p.shows("VOTES FOR")
	p.press("q")
	assert.Equal(t, 0, p.status())
	assert.Contains(t, p.out.String(), "\x1b[?1049l", "the terminal shows again what it did before")
}

func TestTopNeedsATerminal(t *testing.T) {
	t.Setenv("QUORATE_NODES", "127.0.0.1:1")
	p := start(t, "top")
	assert.Equal(t, cli.ExitUsage, p.status())
	assert.Contains(t, p.err.String(), `top needs a terminal; use "quorate ls"`)
	p = start(t, "top", "--every", "0s")
	assert.Equal(t, cli.ExitUsage, p.status())
	assert.Contains(t, p.err.String(), "at least 100ms")
}
