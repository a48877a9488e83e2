package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// What docs/use/ticket.md says: a process takes a lock, and another one ends
// the hold by its token, long before the lease would end. When the process that
// took it dies, only the end of the lease frees the lock.
func TestUnlockByTicket(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		ttl := time.Minute
		if dies {
			ttl = time.Second
		}
		c := redistest.Start(t, 3)
		q := e2e.Open(t, c, e2e.Timing(ttl))
		handler := startWorker(t, c, terms{Name: "m", TTL: ttl, Guard: 2*ttl + 20*time.Millisecond})
		handler.tell(t, "lock")
		token, _ := handler.held(t)
		m := mutex.New(q, "m")
		require.ErrorIs(t, m.TryLockContext(deadline(t)), quorate.ErrHeld)
		require.ErrorIs(t, inspect.Evict(deadline(t), q, "m", token+1024),
			quorate.ErrNotHeld, "the token of another claim")
		if dies {
			handler.kill(t)
		}
		began := time.Now()
		require.NoError(t, inspect.Evict(deadline(t), q, "m", token))
		t.Logf("the handler dies: %v; the hold ended after %v", dies, time.Since(began))
		require.NoError(t, m.LockContext(deadline(t)))
		require.Greater(t, m.Lease().Token(), token)
	}
}
