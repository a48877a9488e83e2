package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// A server that is busy with another program's script refuses what comes, with
// BUSY. A lock that is released meanwhile is free once the script has ended,
// not only when its lease has.
func TestReleaseAtABusyServer(t *testing.T) {
	t.Parallel()
	const ttl = 30 * time.Second
	c := redistest.Start(t, 1)
	q, other := e2e.Open(t, c, e2e.Timing(ttl)), e2e.OpenAt(t, c.URLs(), e2e.Timing(ttl))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	require.NoError(t, c.Node(0).Client().ConfigSet(t.Context(), "busy-reply-threshold", "1").Err())
	script := c.Node(0).Client().Conn()
	defer func() { _ = script.Close() }()
	ended := make(chan error)
	go func() { ended <- script.Eval(t.Context(), "while true do end", nil).Err() }()
	require.True(t, e2e.Eventually(func() bool { return busy(c.Node(0).Client().Get(t.Context(), "x").Err()) }))
	assert.ErrorContains(t, m.UnlockContext(t.Context()), "BUSY")
	require.NoError(t, c.Node(0).Client().ScriptKill(t.Context()).Err())
	require.Error(t, <-ended)
	next := mutex.New(other, "m")
	require.NoError(t, next.LockContext(deadline(t)), "the lease lasts for longer")
	next.Unlock()
}

func busy(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "BUSY ") }
