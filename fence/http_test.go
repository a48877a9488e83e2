package fence_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fence"
	"github.com/quorate/quorate/fence/internal/suite"
)

func TestHandler(t *testing.T) {
	t.Parallel()
	var store fence.Memory
	var calls int
	server := httptest.NewServer(fence.Handler(&store, "orders",
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls++
			token, err := fence.Token(r)
			assert.NoError(t, err)
			assert.Equal(t, r.Header.Get(fence.Header), r.URL.Query().Get("token"))
			if r.URL.Path == "/panic" {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, "done ")
			assert.Positive(t, token)
		})))
	defer server.Close()

	post := func(path string, tokens ...string) (int, string, http.Header) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			server.URL+path+"?token="+strings.Join(tokens, ","), nil)
		require.NoError(t, err)
		req.Header[fence.Header] = tokens
		resp, err := server.Client().Do(req)
		if err != nil {
			return 0, err.Error(), nil
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body), resp.Header
	}
	status, body, _ := post("/", "7")
	assert.Equal(t, http.StatusOK, status, body)
	status, body, header := post("/", "6")
	assert.Equal(t, http.StatusPreconditionFailed, status)
	assert.Equal(t, "7", header.Get(fence.Header))
	assert.Equal(t, `fence "orders": token 6 is stale, a later holder with token 7 has been here: `+
		"write nothing, roll back, and end the work of this hold\n", body)
	status, body, _ = post("/")
	assert.Equal(t, http.StatusPreconditionRequired, status)
	assert.Contains(t, body, "send the token of your hold in the header Quorate-Fence")
	for _, bad := range [][]string{{""}, {"x"}, {"-1"}, {"0"}, {"+8"}, {"8.0"},
		{"9223372036854775808"}, {"8", "9"}} {
		status, body, _ = post("/", bad...)
		assert.Equal(t, http.StatusBadRequest, status, "%q: %s", bad, body)
	}
	assert.Equal(t, 1, calls, "none of these got through")

	// A handler that panics has left.
	status, _, _ = post("/panic", "8")
	assert.Zero(t, status)
	status, body, _ = post("/", "9")
	assert.Equal(t, http.StatusOK, status, body)
}

// broken is a store that fails.
type broken struct{}

func (broken) Enter(context.Context, string, uint64) (func(), error) {
	return nil, errors.New("password=secret")
}

func TestHandlerWithoutStore(t *testing.T) {
	t.Parallel()
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set(fence.Header, "5")
	fence.Handler(broken{}, "orders", http.NotFoundHandler()).ServeHTTP(w, r)
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.NotContains(t, w.Body.String(), "secret")
	assert.Panics(t, func() { fence.Handler(broken{}, "", http.NotFoundHandler()) })
}

func TestTransport(t *testing.T) {
	t.Parallel()
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header.Get(fence.Header)
	}))
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL, nil)
	require.NoError(t, err)
	for _, base := range []http.RoundTripper{nil, server.Client().Transport} {
		client := &http.Client{Transport: fence.Transport(base, suite.Big+1)}
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, "1838381800842592257", got)
		assert.Empty(t, req.Header, "the request itself stays as it was")
	}
}
