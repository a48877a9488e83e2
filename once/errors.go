package once

import (
	"errors"

	"github.com/quorate/quorate/internal/fault"
)

// The kinds of failure of this package, beside those of package quorate.
var (
	// ErrNotRecorded ("done here, not recorded") says that the work has been
	// done here, and is not recorded: its function has returned without an
	// error, but a majority of the nodes has not confirmed the record. Another
	// process will run it again, unless a node has the record after all. The
	// error also matches why: the context's error and [quorate.ErrNoQuorum],
	// when the context has ended the attempts; [quorate.ErrLost], when the
	// claim had been lost and a later run has begun; [quorate.ErrInvalid], when
	// the value cannot be recorded; or [quorate.ErrClosed].
	ErrNotRecorded = errors.New("done here, not recorded")
	// ErrNotDurable ("too few nodes keep their data on disk") says that so many
	// nodes keep less on disk than [WithDurable] asks for that the others are
	// no majority. The work has not been run.
	ErrNotDurable = errors.New("too few nodes keep their data on disk")
)

// failed is f's own error, and what happened to its claim meanwhile.
type failed struct{ err, lost error }

func (e *failed) Error() string { return e.err.Error() }

// unrecorded is why the end of the work could not be recorded.
type unrecorded struct{ why error }

func (e *unrecorded) Error() string   { return ErrNotRecorded.Error() + ": " + e.why.Error() }
func (e *unrecorded) Unwrap() []error { return []error{ErrNotRecorded, e.why} }

// notRecorded keeps what each node has said where it was.
func notRecorded(err error) error {
	f, ok := errors.AsType[*fault.Failure](err)
	if !ok {
		return &unrecorded{err}
	}
	said := *f
	said.Err = &unrecorded{f.Err}
	return &said
}
