package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// dieWithParent has the kernel kill the child when the thread that starts it
// ends, and so when this process ends in whatever way.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// stopTimeout only guards against hanging.
const stopTimeout = 20 * time.Second

func stopProcess(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for deadline := time.Now().Add(stopTimeout); ; time.Sleep(time.Millisecond) {
		stopped, err := stands(p.Pid)
		if stopped || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not stop", p.Pid)
		}
	}
}

// stands says whether no thread of a process runs. A process that has ended is
// an error.
func stands(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err == nil && len(threads) == 0 {
		err = os.ErrProcessDone
	}
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH):
			continue // the thread has ended
		case err != nil:
			return false, err
		}
		// "pid (name) state ...", and a name may hold anything, parentheses
		// too.
		if _, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:],
			[]byte(" ")); !bytes.HasPrefix(rest, []byte("T")) {
			return false, nil
		}
	}
	return true, nil
}

func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
