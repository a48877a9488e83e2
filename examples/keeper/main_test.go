package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/quoratetest"
)

// serve runs a keeper on a Unix socket, and returns a client of it.
func serve(t *testing.T, q *quorate.Quorum) *http.Client {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: keeper(q)}}
	server.Start()
	t.Cleanup(server.Close)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// lock takes a name, and returns its token, how to close the connection, and
// what is left of the answer.
func lock(t *testing.T, c *http.Client, name string) (token uint64, leave func(), rest io.Reader) {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://keeper/locks/"+name, nil)
	require.NoError(t, err)
	answer, err := c.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	t.Cleanup(cancel)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	b := bufio.NewReader(answer.Body)
	_, err = fmt.Fscanln(b, &token)
	require.NoError(t, err)
	return token, cancel, b
}

// A lock is held until the client goes, and then by the next one.
func TestKeeper(t *testing.T) {
	nodes := quoratetest.New(t, 3)
	here, there := serve(t, nodes.Quorum()), serve(t, nodes.Quorum())
	first, leave, _ := lock(t, here, "invoices")
	assert.Equal(t, first, nodes.Holders("invoices")[0].Token)
	go func() {
		for nodes.Holders("invoices")[0].Waiters == 0 {
			time.Sleep(time.Millisecond)
		}
		leave()
	}()
	next, _, _ := lock(t, there, "invoices")
	assert.Greater(t, next, first)
}

// The answer ends when the lock is lost.
func TestKeeperLosesALock(t *testing.T) {
	nodes := quoratetest.New(t, 3)
	q := nodes.Quorum(quorate.WithTTL(time.Second), quorate.WithLogger(nil))
	_, _, rest := lock(t, serve(t, q), "invoices")
	nodes.Partition(q, 0, 1)
	more, err := io.ReadAll(rest)
	require.NoError(t, err)
	assert.Empty(t, more)
}

func TestKeeperRefuses(t *testing.T) {
	nodes := quoratetest.New(t, 3)
	q := nodes.Quorum(quorate.WithLogger(nil))
	c := serve(t, q)
	answer, err := c.Post("http://keeper/locks/%7Ba%7D", "", nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusBadRequest, answer.StatusCode)
	require.NoError(t, answer.Body.Close())
	require.NoError(t, q.Close())
	answer, err = c.Post("http://keeper/locks/a", "", nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
	require.NoError(t, answer.Body.Close())
}
