//go:build !unix

package process

import (
	"errors"
	"os"
	"os/exec"
)

// dieWithParent can do nothing here: a child outlives a process that does not
// end it.
func dieWithParent(*exec.Cmd) {}

func stopProcess(*os.Process) error     { return errors.ErrUnsupported }
func continueProcess(*os.Process) error { return errors.ErrUnsupported }
