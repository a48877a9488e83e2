package main

import (
	"os/exec"
	"runtime"
)

// spawner starts processes from one thread that stays: on Linux the kernel ends
// them when the thread that started them ends, so also those that are stopped
// when the harness is killed. A thread of the Go runtime's choice ends any time.
type spawner struct{ jobs chan func() }

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	s.jobs <- func() { result <- cmd.Start() }
	return <-result
}

func (s *spawner) close() { close(s.jobs) }
