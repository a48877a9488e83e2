package quorate

import (
	"context"

	"github.com/quorate/quorate/internal/setup"
)

// WithNote returns a context that carries a note, such as the ID of a request
// or a job. If you lock with this context, operators see the note: in [Holder],
// in package inspect, and in the commands inspect, ls, top and ui. Anyone who
// can read the nodes can read the note, so do not put secrets in it.
//
// The note belongs to the claim. Goroutines that share a value share the claim,
// and with it the note of the call that asked the nodes. An empty note is the
// same as none.
//
// A note must be UTF-8, at most 200 bytes long, and must not contain line
// breaks or other unprintable characters. Otherwise, calls that make a claim
// return [ErrInvalid].
func WithNote(ctx context.Context, note string) context.Context { return setup.WithNote(ctx, note) }
