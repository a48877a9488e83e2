package redistest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// dieWithParent has the kernel kill the process when the thread that starts it ends, and so when this
// process ends in whatever way. It needs a thread that stays: see spawner.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// stopProcess returns when the process stands still: the signal alone only asks for it, and a command sent
// right after may still be carried out.
func stopProcess(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if err != nil {
			return err
		}
		// "pid (name) state ...", and a name may hold anything, parentheses too.
		if _, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" ")); bytes.HasPrefix(rest, []byte("T")) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not stop", p.Pid)
		}
		time.Sleep(time.Millisecond)
	}
}

func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
