//go:build !unix

package redistest

import (
	"errors"
	"os"
	"os/exec"
)

// dieWithParent can do nothing here: a server outlives a process that does not come to Close.
func dieWithParent(*exec.Cmd) {}

func stopProcess(*os.Process) error     { return errors.ErrUnsupported }
func continueProcess(*os.Process) error { return errors.ErrUnsupported }
