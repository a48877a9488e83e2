package health_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/health"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

// get returns what a handler answers. It takes no time, so no node was asked
// for it.
func get(t *testing.T, h http.Handler) (status int, body string) {
	t.Helper()
	began, w := time.Now(), httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	assert.Zero(t, time.Since(began))
	return w.Code, w.Body.String()
}

// becomes waits until a handler answers with a status, and returns the body.
func becomes(t *testing.T, h http.Handler, status int) (body string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var now int
		now, body = get(t, h)
		return now == status
	}, time.Minute, time.Second)
	return body
}

// Readiness follows the nodes; liveness does not.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		ready, live := health.Ready(q), health.Live(time.Minute)
		becomes(t, ready, http.StatusOK)

		c.Stop(0)
		time.Sleep(5 * time.Second)
		status, _ := get(t, ready)
		assert.Equal(t, http.StatusOK, status, "a majority is left")

		c.Stop(1)
		body := becomes(t, ready, http.StatusServiceUnavailable)
		assert.Contains(t, body, "no quorum of nodes (1 of 3 nodes connected, 1 can vote, 2 needed)")
		status, body = get(t, live)
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, "ok\n", body)

		// The two are back without their data, and do not vote for the guard
		// time.
		for i := range 2 {
			c.Forget(i)
			c.Start(i)
		}
		require.Eventually(t, func() bool {
			_, body = get(t, ready)
			return strings.Contains(body, "votes in")
		}, 10*time.Second, time.Second)
		m := mutex.New(q, "m")
		require.ErrorIs(t, m.TryLockContext(t.Context()), quorate.ErrNoQuorum, "as the handler says")
		becomes(t, ready, http.StatusOK)
		require.True(t, m.TryLock(), "as the handler says")

		require.NoError(t, q.Close())
		status, body = get(t, ready)
		assert.Equal(t, http.StatusServiceUnavailable, status)
		assert.Contains(t, body, "quorum closed")
	})
}

// The leader answers as such while it leads, and is not alive when its work
// goes on for too long after the term.
func TestLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		e := leader.New(c.Quorum(), "e")
		leads, live := health.Leader(e), health.Live(time.Minute, e)
		status, body := get(t, leads)
		assert.Equal(t, http.StatusServiceUnavailable, status)
		assert.Equal(t, "this process is not the leader\n", body)
		require.NoError(t, e.Campaign(t.Context(), ""))
		status, _ = get(t, leads)
		assert.Equal(t, http.StatusOK, status)

		c.Stop(0)
		c.Stop(1)
		time.Sleep(30 * time.Second)
		status, _ = get(t, leads)
		assert.Equal(t, http.StatusServiceUnavailable, status, "the term is lost")
		status, _ = get(t, live)
		assert.Equal(t, http.StatusOK, status)
		time.Sleep(time.Minute)
		status, body = get(t, live)
		assert.Equal(t, http.StatusServiceUnavailable, status)
		assert.Contains(t, body, "OnStartedLeading is still running")
		require.ErrorIs(t, e.Resign(context.Background()), quorate.ErrLost)
		status, _ = get(t, live)
		assert.Equal(t, http.StatusOK, status)
	})
}

// A logger prints what a lease is.
func TestLeaseInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mutex.New(quoratetest.New(t, 1).Quorum(), "invoices")
		m.Lock()
		defer m.Unlock()
		var text bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).Info("works", "lease", m.Lease())
		assert.Contains(t, text.String(), "lease.name=invoices lease.token=")
		assert.Regexp(t, `lease.left=7\.\d+s`, text.String())
	})
}
