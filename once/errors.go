package once

import (
	"errors"

	"github.com/quorate/quorate/internal/fault"
)

// The kinds of failure of this package, in addition to those of package quorate.
var (
	// ErrNotRecorded ("done here, not recorded") means that this process did the
	// work but could not record it: the function returned without an error, but a
	// majority of the nodes did not confirm the record. Another process will do
	// the work again, unless some node has the record after all. The error also
	// matches the reason: the context's error and [quorate.ErrNoQuorum] if the
	// context was done first; [quorate.ErrLost] if the claim was lost and a later
	// run has begun; [quorate.ErrInvalid] if the value cannot be recorded; or
	// [quorate.ErrClosed].
	ErrNotRecorded = errors.New("done here, not recorded")
	// ErrNotDurable ("too few nodes keep their data on disk") means that fewer
	// than a majority of the nodes keep as much on disk as [WithDurable] requires.
	// The work has not been run.
	ErrNotDurable = errors.New("too few nodes keep their data on disk")
)

// failed is f's own error, and what happened to its claim in the meantime.
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
