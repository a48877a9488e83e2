package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// This file owns how the command ends.

// Exit statuses of our own, as far as they have a name in sysexits.h.
const (
	ExitUsage    = 64 // the command line is wrong
	ExitNoQuorum = 69 // too few nodes could be asked
	ExitLost     = 70 // the lock was lost while the command ran
	ExitOutput   = 74 // the output could not be written
	ExitHeld     = 75 // another client holds the lock, or is ahead
)

// Exit is an error with the status to leave with. With err nil all has been
// said.
type Exit struct {
	Code int
	Err  error
}

func NewExit(code int, err error) *Exit { return &Exit{code, err} }

func (e *Exit) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Exit) Unwrap() error { return e.Err }

// CannotRun is the end of a command that did not begin, with the status that
// shells give.
func CannotRun(err error) *Exit {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return NewExit(127, err)
	}
	return NewExit(126, err)
}
