package redistest

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// set gives a server that is about to be started the clock and the disk that
// are its own, where it has such. Both are libraries that answer in the
// kernel's place. The disk comes first, which needs nothing: after libc's name
// the loader would not find its functions.
func (s *Server) set(cmd *exec.Cmd, began time.Time) error {
	if len(s.libraries) == 0 {
		return nil
	}
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "FAKETIME") || strings.HasPrefix(v, "LD_PRELOAD=")
	})
	cmd.Env = append(cmd.Env, "LD_PRELOAD="+strings.Join(s.libraries, ":"))
	if s.cfg.disk {
		cmd.Env = append(cmd.Env, "REDISTEST_DISK="+s.diskDir())
		if err := s.settle(); err != nil {
			return err
		}
	}
	if s.clock == nil {
		return nil
	}
	cmd.Env = append(cmd.Env,
		"FAKETIME_TIMESTAMP_FILE="+s.clock.file,
		"FAKETIME_NO_CACHE=1",            // the next look at the clock sees the change
		"FAKETIME_DONT_FAKE_MONOTONIC=1", // a machine whose wall clock jumps has timers that do not
		"NO_FAKE_STAT=1")
	return s.clock.write(began)
}
