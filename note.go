package quorate

import (
	"context"

	"github.com/quorate/quorate/internal/setup"
)

// WithNote returns a context that carries a note, such as the ID of a request
// or a job. A claim that is made with this context shows the note to operators:
// in [Holder], in package inspect, and in the commands inspect, ls, top and ui.
// Anybody who can read the nodes can read the note, so it must not be a secret.
//
// The note belongs to the claim. Goroutines that share a value share the claim,
// and therefore the note of the call that asked the nodes. The empty note is no
// note.
//
// A note is at most 200 bytes of UTF-8 without line breaks or other characters
// that cannot be printed. With any other note, a call that makes a claim fails
// with [ErrInvalid].
func WithNote(ctx context.Context, note string) context.Context { return setup.WithNote(ctx, note) }
