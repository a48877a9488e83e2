//go:build unix

package child

import (
	"os"
	"syscall"
)

// Passed are the signals, besides those that end a command, that a command
// gets: all that a process can catch and that are sent on purpose.
//
// Left out are TSTP, TTIN, TTOU and CONT, with which a shell controls its jobs
// (see [Process.stopped]); CHLD, URG and PROF, which this process and Go's
// runtime get all the time; PIPE, which is about this process's own output; and
// the signals of a fault (SEGV, ABRT, …), which concern the process that has it.
func Passed() (all []os.Signal) {
	for _, s := range append(systemSignals(), syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGWINCH, syscall.SIGALRM,
		syscall.SIGVTALRM, syscall.SIGXCPU, syscall.SIGXFSZ, syscall.SIGIO) {
		all = append(all, s)
	}
	return all
}

// Pass sends a signal to the command alone, as a user would who knew its pid.
// Its children may not expect the signal, and would die of it.
func (c *Process) Pass(s os.Signal) { _ = syscall.Kill(c.pid, s.(syscall.Signal)) }
