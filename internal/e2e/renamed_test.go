package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// A server without a command that every request needs is refused at once, with
// its own words: no waiting brings the command back.
func TestRenamedCommands(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"EVALSHA", "TIME"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			c := redistest.Start(t, 1, redistest.WithArgs("--rename-command", command, ""))
			q := e2e.OpenAt(t, c.URLs(), e2e.Timing(time.Second))
			ctx, cancel := context.WithTimeout(t.Context(), 5*e2e.Patience)
			defer cancel()
			err := mutex.New(q, "m").LockContext(ctx)
			require.ErrorIs(t, err, quorate.ErrNoQuorum)
			require.NoError(t, ctx.Err(), "%v", err)
			assert.ErrorContains(t, err, "unknown command '"+command+"'")
		})
	}
}
