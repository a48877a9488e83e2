//go:build unix

package child

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// guardName is the hidden command that a guard runs.
const guardName = "guard-group"

// guard is a process that ends a command's process group if this process dies
// without an orderly end (SIGKILL, out of memory). The kernel ends a child with
// its parent on Linux only, and the child's own children nowhere. They would go
// on working under a lock that the next holder gets when the lease ends.
//
// The guard holds the reading end of a pipe. Only this process has the writing
// end, so its end closes the pipe, however it comes about.
type guard struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// selfAndPipe returns what starts this program again, and a pipe to it.
func selfAndPipe() (self string, r, w *os.File, err error) {
	if self, err = os.Executable(); err != nil {
		return "", nil, nil, err
	}
	r, w, err = os.Pipe()
	return self, r, w, err
}

// startGuard starts a guard of a process group.
func startGuard(group int) (*guard, error) {
	self, r, w, err := selfAndPipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	cmd := exec.Command(self, guardName, strconv.Itoa(group))
	cmd.Env = cli.WithoutNodes(os.Environ())
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's signals are not for it
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return nil, err
	}
	return &guard{cmd, w}, nil
}

// dismiss ends the guard after an orderly end. What the command has left
// running stays.
func (g *guard) dismiss() {
	_, _ = g.pipe.Write([]byte{1})
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
}

// guardGroup is the guard's work: it kills the group unless it is dismissed.
func guardGroup(group int, pipe io.Reader) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	if word, _ := io.ReadAll(pipe); len(word) == 0 {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
}

func GuardCommands() []*cobra.Command { return []*cobra.Command{guardCommand(), gateCommand()} }

func guardCommand() *cobra.Command {
	return &cobra.Command{
		Use: guardName + " GROUP", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			group, err := strconv.Atoi(args[0])
			if err != nil || group < 2 {
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("%s: %q is no process group", guardName, args[0]))
			}
			guardGroup(group, os.Stdin)
			return nil
		},
	}
}
