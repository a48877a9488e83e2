package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

func init() {
	// hold locks until the hold ends: held as lock does, then ended NANOSECONDS
	// EVICTED.
	modes["hold"] = func(q *quorate.Quorum, name string, _ []string) error {
		m := mutex.New(q, name)
		m.Lock()
		l := m.Lease()
		fmt.Println("held", l.Token(), time.Now().UnixNano())
		<-l.Context().Done()
		fmt.Println("ended", time.Now().UnixNano(), errors.Is(context.Cause(l.Context()), quorate.ErrEvicted))
		m.Unlock()
		return nil
	}
}

// A process that runs ends its hold when it is evicted, before the next one
// gets in. One that is stopped loses it when its lease ends, and not before.
func TestEvict(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second
	c := redistest.Start(t, 3)
	eye := e2e.Open(t, c, e2e.Timing(ttl))
	tm := terms{URLs: c.URLs(), Name: "m", TTL: ttl, Guard: 2*ttl + 20*time.Millisecond}
	a, b, last := startWorker(t, c, tm), startWorker(t, c, tm), startWorker(t, c, tm)
	waits := func(n int) {
		require.True(t, e2e.Eventually(func() bool {
			r, err := inspect.Name(t.Context(), eye, "m")
			return err == nil && len(r.Waiters) == n
		}))
	}
	a.tell(t, "hold")
	token, _ := a.held(t)
	b.tell(t, "hold")
	waits(1)
	last.tell(t, "hold")
	waits(2)
	ctx, cancel := context.WithTimeout(t.Context(), e2e.Patience)
	defer cancel()

	asked := time.Now()
	require.NoError(t, inspect.Evict(ctx, eye, "m", token))
	var ended int64
	var evicted bool
	line := a.answer(t)
	_, err := fmt.Sscanf(line, "ended %d %t", &ended, &evicted)
	require.NoError(t, err, line)
	assert.True(t, evicted)
	next, at := b.held(t)
	assert.Greater(t, next, token)
	t.Logf("ended after %v, the next process is in after %v", time.Unix(0, ended).Sub(asked), at.Sub(asked))
	assert.Less(t, at.Sub(asked), ttl/2)

	require.NoError(t, b.Stop())
	require.True(t, e2e.Eventually(func() bool { // its last renewal has arrived
		r, err := inspect.Name(t.Context(), eye, "m")
		return err == nil && len(r.Holders) == 1 && r.Holders[0].Left < ttl*6/10
	}))
	asked = time.Now()
	require.NoError(t, inspect.Evict(ctx, eye, "m", next))
	took := time.Since(asked)
	assert.Less(t, took, ttl)
	after, at := last.held(t)
	assert.Greater(t, after, next)
	t.Logf("it is stopped: over after %v, the next process is in after %v", took, at.Sub(asked))
	require.NoError(t, b.Continue())
	line = b.answer(t)
	_, err = fmt.Sscanf(line, "ended %d %t", &ended, &evicted)
	require.NoError(t, err, line)
	assert.False(t, evicted, "its lease had ended")
	require.NoError(t, inspect.Evict(ctx, eye, "m", after))
	last.until(t, "ended")
}
