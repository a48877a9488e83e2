package redistest

import (
	"os/exec"
	"runtime"
)

// spawner starts all processes of a cluster from one OS thread, which lives as long as the cluster.
//
// Note: Here is an incorrect implementation:
//
//	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
//	cmd.Start()
//
// The kernel sends that signal when the *thread* that forked ends, not when the process does. The Go
// runtime ends threads as it likes (a goroutine that exits while locked to its thread takes it along), and
// the server would die in the middle of a test for no visible reason.
type spawner struct {
	jobs chan func()
	done chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// start is cmd.Start on the spawner's thread. It must not be called after close.
func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	s.jobs <- func() { result <- cmd.Start() }
	return <-result
}

// close gives up the thread. No process that it started may still be needed.
func (s *spawner) close() {
	close(s.jobs)
	<-s.done
}
