package setup

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quorate/quorate/internal/fault"
)

// maxNote is the longest note, in bytes.
const maxNote = 200

type noteKey struct{}

// WithNote returns a context that carries a note.
func WithNote(ctx context.Context, note string) context.Context {
	return context.WithValue(ctx, noteKey{}, note)
}

// NoteOf returns the note that ctx carries, "" if it carries none. Its error
// matches ErrInvalid.
func NoteOf(ctx context.Context) (string, error) {
	note, _ := ctx.Value(noteKey{}).(string)
	return note, CheckNote(note)
}

// CheckNote fails with ErrInvalid if the note is longer than maxNote or contains an
// unprintable character. Package leader applies the same rule to the IDs of
// candidates. script.Candidate relies on it: a note or an ID contains no tab.
func CheckNote(note string) error {
	switch {
	case len(note) > maxNote:
		return fmt.Errorf("%w: WithNote: the note is %d bytes long; at most %d are allowed",
			fault.ErrInvalid, len(note), maxNote)
	case !utf8.ValidString(note):
		return fmt.Errorf("%w: WithNote: the note %q is not UTF-8", fault.ErrInvalid, note)
	case strings.ContainsFunc(note, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%w: WithNote: the note %q contains a line break or another character that cannot be "+
			"printed", fault.ErrInvalid, note)
	}
	return nil
}
