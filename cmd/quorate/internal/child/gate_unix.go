//go:build unix

package child

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// GateName is the hidden command that a gated child begins as.
const GateName = "start-when-guarded"

// gate holds a command back until its guard exists.
//
// Invariant: the command runs no instruction of its own before its process
// group has a guard. Without the gate this process may be killed between the
// start of the command and the start of the guard. On a busy machine that is
// long enough for the command to start children, and nothing would end them.
//
// The child begins as this program. It waits at the reading end of a pipe, and
// then becomes the command in the same process. If this process dies first, the
// pipe closes and the command never begins.
type gate struct{ r, w *os.File }

// newGate rewrites cmd so that the command waits for open. A command that
// cannot be found is an error here, as it is in [exec.Cmd.Start].
func newGate(cmd *exec.Cmd) (*gate, error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	self, r, w, err := selfAndPipe()
	if err != nil {
		return nil, err
	}
	// Note: Here is an incorrect way to give the child the pipe:
	//
	//	cmd.ExtraFiles = []*os.File{r}
	//
	// It would be descriptor 3 of the command, in the place of what this
	// process was started with: the jobserver of make, or the socket of a
	// service manager.
	fd := int(r.Fd())
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
		_, _ = r.Close(), w.Close()
		return nil, err
	}
	cmd.Args = append([]string{self, GateName, "--", strconv.Itoa(fd), cmd.Path}, cmd.Args...)
	cmd.Path = self
	return &gate{r, w}, nil
}

// started says that the child has the pipe. No other process gets it.
func (g *gate) started() { _ = g.r.Close() }

// open lets the command begin.
func (g *gate) open() { _, _ = g.w.Write([]byte{1}) }

// close ends the gate. A command that has not begun never begins.
func (g *gate) close() {
	_ = g.r.Close()
	_ = g.w.Close()
}

// passGate waits at the gate, which is at a descriptor, and becomes the
// command. It returns on failure only.
func passGate(fd int, path string, argv []string) error {
	pipe := os.NewFile(uintptr(fd), "gate")
	unix.CloseOnExec(fd)
	if n, err := pipe.Read(make([]byte, 1)); n == 0 {
		return cli.NewExit(cli.ExitUsage, fmt.Errorf("%s: the process that started this one has ended: %w",
			GateName, err))
	}
	err := unix.Exec(path, argv, os.Environ())
	return cli.CannotRun(fmt.Errorf("%s: %w", path, err))
}

func gateCommand() *cobra.Command {
	return &cobra.Command{
		Use: GateName + " DESCRIPTOR PATH COMMAND [ARG...]", Hidden: true, Args: cobra.MinimumNArgs(3),
		RunE: func(_ *cobra.Command, args []string) error {
			fd, err := strconv.Atoi(args[0])
			if err != nil || fd < 3 {
				return cli.NewExit(cli.ExitUsage, fmt.Errorf("%s: %q is no descriptor of a pipe", GateName, args[0]))
			}
			return passGate(fd, args[1], slices.Clone(args[2:]))
		},
	}
}
