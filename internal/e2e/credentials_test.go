package e2e_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// A provider may deliver other credentials at any time. So a call waits for
// these as long as its context lasts, and goes on with them. A password that
// cannot change fails at once.
func TestStaleCredentials(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	require.NoError(t, node.Client().Do(t.Context(), "ACL", "SETUSER", "app", "on", ">fresh", "allkeys",
		"allchannels", "+@all").Err())
	var asked atomic.Int64
	var password atomic.Value
	for name, o := range map[string]redis.Options{
		"provider": {CredentialsProviderContext: func(context.Context) (string, string, error) {
			asked.Add(1)
			return "app", password.Load().(string), nil
		}},
		"static": {Username: "app", Password: "stale"},
	} {
		t.Run(name, func(t *testing.T) {
			password.Store("stale")
			o.Addr = node.Addr()
			client := redis.NewClient(&o)
			defer func() { _ = client.Close() }()
			q, err := quorate.New([]redis.UniversalClient{client}, e2e.Timing(time.Second), quorate.WithLogger(nil))
			require.NoError(t, err)
			defer func() { _ = q.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), 5*e2e.Patience)
			defer cancel()
			m := mutex.New(q, "m")
			if name == "static" {
				require.ErrorContains(t, m.LockContext(ctx), "WRONGPASS")
				require.NoError(t, ctx.Err(), "no waiting helps")
				return
			}
			got := make(chan error, 1)
			go func() { got <- m.LockContext(ctx) }()
			for n := asked.Load(); asked.Load() < n+3; { // it has been refused more than once
				select {
				case err := <-got:
					require.NoError(t, err, "with 100 s left")
				case <-time.After(time.Millisecond):
				}
			}
			assert.ErrorIs(t, mutex.New(q, "other").TryLockContext(ctx), quorate.ErrNoQuorum, "a try does not wait")
			password.Store("fresh")
			require.NoError(t, e2e.Receive(t, got))
			m.Unlock()
		})
	}
}
