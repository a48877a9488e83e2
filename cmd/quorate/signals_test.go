//go:build linux

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The command gets each signal that can be passed on, and goes on. Its children
// do not get these: they may not expect them.
func TestSignalsThatDoNotEnd(t *testing.T) {
	startNodes(t, 3)
	const script = `for s in USR1 USR2 WINCH ALRM IO RTMIN+6; do trap "echo got $s" $s; done
		bash -c 'trap "echo child" USR1; echo child up; while :; do sleep 0.02; done' & echo ready; while :; do sleep 0.02; done`
	for _, verb := range [][]string{{"lock", "a"}, {"sem", "b", "-n", "2"}, {"once", "c"},
		{"leader", "d"}, {"every", "e", "1h"}} {
		p := start(t, append(verb, "--", "bash", "-c", script)...)
		p.says("ready")
		p.says("child up")
		for name, s := range map[string]syscall.Signal{
			"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH, "ALRM": syscall.SIGALRM,
			"IO": syscall.SIGIO, "RTMIN+6": 40,
		} {
			p.signal(s)
			p.says("got " + name)
		}
		p.signal(syscall.SIGTERM)
		assert.Equal(t, 128+15, p.status(), verb)
		assert.NotContains(t, p.out.String(), "child\n", verb)
	}
}

// A signal that does not end a command does not end the waiting for one.
func TestSignalsWhileWaiting(t *testing.T) {
	ns := startNodes(t, 3)
	m := rival(t, ns, "x")
	require.NoError(t, m.LockContext(t.Context()))
	p := start(t, "lock", "x", "--", "echo", "now")
	waits(t, m)
	p.signal(syscall.SIGUSR1)
	p.signal(syscall.SIGWINCH)
	require.NoError(t, m.UnlockContext(t.Context()))
	assert.Equal(t, 0, p.status(), &p.err)
	assert.Equal(t, "now\n", p.out.String())
}

// In a shell the command has the terminal. Ctrl-Z stops it and this process
// with it, fg continues both, and Ctrl-C ends it.
func TestJobControl(t *testing.T) {
	startNodes(t, 3)
	p := onATerminal(t, exec.Command("bash", "--norc", "--noediting", "-i"))
	p.press("PS1='ready> '; '" + os.Args[0] + "' lock x -- sh -c 'echo begins; exec cat'\n")
	p.says("begins\r\n")
	p.press("\x1a")
	p.says("Stopped")
	p.press("fg\n")
	p.says("fg\r\n'" + os.Args[0])
	p.press("typed\n")
	p.says("typed\r\ntyped\r\n") // by the terminal, and by cat
	p.press("\x03")              // the terminal drops what was typed before the shell has it again
	require.Eventually(t, func() bool {
		_, after, _ := strings.Cut(p.out.String(), "^C")
		return strings.Contains(after, "ready> ")
	}, 20*time.Second, 5*time.Millisecond, &p.out)
	p.press("echo status=$?\n")
	p.says("status=130\r\n")
	p.press("exit\n")
	assert.Equal(t, 0, p.status(), &p.out)
}

// The command has the user of the process that holds the lock, and still cannot
// read the nodes' URLs there. Root could, so the test does without.
func TestCommandCannotReadTheNodes(t *testing.T) {
	startNodes(t, 1)
	self, attr := os.Args[0], &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		dir, err := os.MkdirTemp("", "quorate-")
		require.NoError(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		require.NoError(t, os.Chmod(dir, 0o755))
		self = filepath.Join(dir, "quorate")
		copyFile(t, os.Args[0], self)
		attr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	cmd := exec.Command(self, "lock", "x", "--", "sh", "-c",
		`tr '\0' '\n' <"/proc/$PPID/environ" | grep QUORATE; echo ends`)
	cmd.SysProcAttr, cmd.Dir = attr, "/"
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	assert.Contains(t, string(text), "ends\n")
	assert.Contains(t, string(text), "Permission denied")
	assert.NotContains(t, string(text), "QUORATE_NODES")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	r, err := os.Open(from)
	require.NoError(t, err)
	defer r.Close()
	w, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(w, r)
	require.NoError(t, err)
	require.NoError(t, w.Close())
}
