package page

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/cmd/quorate/internal/board"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns a page that is served, and a client.
func serve(t *testing.T) (*Page, *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	p := New(s.Listener.Addr().(*net.TCPAddr))
	s.Config.Handler = p
	s.Start()
	c := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		p.Close()
		c.CloseIdleConnections()
		s.Close()
	})
	return p, c
}

func get(t *testing.T, c *http.Client, method, url, host string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	req.Host = host
	resp, err := c.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header, string(body)
}

func TestLocal(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:0": "127.0.0.1:0", "[::1]:80": "[::1]:80",
		"localhost:1": "127.0.0.1:1", "127.9.9.9:1": "127.9.9.9:1",
		"0.0.0.0:0": "", ":0": "", "10.0.0.1:1": "", "example.org:1": "", "[::]:1": "", "127.0.0.1": "", "8080": "",
	} {
		got, err := Local(listen)
		assert.Equal(t, want, got, listen)
		assert.Equal(t, want == "", err != nil, listen)
	}
}

// Nothing is shown without the token, under another name, or to another site.
func TestRefusals(t *testing.T) {
	p, c := serve(t)
	good := p.URL()
	bare, token, _ := strings.Cut(good, "?token=")
	require.GreaterOrEqual(t, len(token), 26)
	local := strings.TrimSuffix(strings.TrimPrefix(bare, "http://"), "/")
	port := local[strings.LastIndex(local, ":"):]
	for name, r := range map[string]struct {
		method, url, host string
		want              int
	}{
		"right":               {"GET", good, "", 200},
		"as localhost":        {"GET", good, "localhost" + port, 200},
		"head":                {"HEAD", good, "", 200},
		"no token":            {"GET", bare, "", 403},
		"wrong token":         {"GET", bare + "?token=" + strings.Repeat("A", len(token)), "", 403},
		"longer token":        {"GET", good + "A", "", 403},
		"events, no token":    {"GET", bare + "events", "", 403},
		"rebound name":        {"GET", good, "evil.example" + port, 421},
		"rebound name, alone": {"GET", good, "evil.example", 421},
		"another port":        {"GET", good, "127.0.0.1:1", 421},
		"post":                {"POST", good, "", 405},
		"other path":          {"GET", bare + "x?token=" + token, "", 404},
	} {
		t.Run(name, func(t *testing.T) {
			status, h, body := get(t, c, r.method, r.url, r.host)
			assert.Equal(t, r.want, status)
			assert.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'sha256-")
			assert.Equal(t, "no-store", h.Get("Cache-Control"))
			assert.Empty(t, h.Get("Access-Control-Allow-Origin"))
			assert.NotContains(t, body, token, "it is in the URL only")
			assert.Equal(t, status == 200 && r.method == "GET", strings.Contains(body, "<title>Quorate"))
		})
	}
	assert.NotEqual(t, good, New(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}).URL())
}

// The document loads nothing, and writes text as text only.
func TestDocument(t *testing.T) {
	for _, banned := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
		" src=", "<link", "@import", "url(", "style="} {
		assert.NotContains(t, document, banned)
	}
}

// open opens a stream, and returns how to read the next view, and to leave.
func open(t *testing.T, p *Page, c *http.Client) (next func() board.View, leave func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		strings.Replace(p.URL(), "/?", "/events?", 1), nil)
	require.NoError(t, err)
	resp, err := c.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, 200, resp.StatusCode)
	assert.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	return func() (v board.View) {
		t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				require.NoError(t, json.Unmarshal([]byte(data), &v))
				return v
			}
		}
		t.Fatalf("the stream has ended: %v", lines.Err())
		return v
	}, cancel
}

// Each viewer gets the newest view at once, and those that follow.
func TestStream(t *testing.T) {
	p, c := serve(t)
	p.Show(board.View{Total: 1})
	a, _ := open(t, p, c)
	assert.Equal(t, 1, a().Total)
	b, _ := open(t, p, c)
	assert.Equal(t, 1, b().Total)
	p.Show(board.View{Total: 2})
	assert.Equal(t, 2, a().Total)
	assert.Equal(t, 2, b().Total)
}

// More viewers than there is room for are refused, and one that leaves makes
// room.
func TestViewersAreBounded(t *testing.T) {
	p, c := serve(t)
	var leave func()
	for range MostViewers {
		_, leave = open(t, p, c)
	}
	status, _, body := get(t, c, "GET", strings.Replace(p.URL(), "/?", "/events?", 1), "")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, body, "16 pages are open")
	leave()
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.viewers) == MostViewers-1
	}, 20*time.Second, time.Millisecond)
	p.Show(board.View{})
	open(t, p, c)
}

// Close ends the streams; it may be called twice.
func TestClose(t *testing.T) {
	p, c := serve(t)
	open(t, p, c)
	p.Close()
	p.Close()
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.viewers) == 0
	}, 20*time.Second, time.Millisecond)
}
