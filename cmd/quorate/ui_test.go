package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/board"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
)

// views reads the stream of a page until one view is as wanted.
func views(t *testing.T, url string) (until func(what string, is func(*board.View) bool) board.View) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		strings.Replace(url, "/?", "/events?", 1), nil)
	require.NoError(t, err)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return func(what string, is func(*board.View) bool) (v board.View) {
		t.Helper()
		for range 400 {
			if !lines.Scan() {
				break
			}
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			v = board.View{}
			require.NoError(t, json.Unmarshal([]byte(data), &v))
			if is(&v) {
				return v
			}
		}
		t.Fatalf("never %s: %v; last %+v", what, lines.Err(), v)
		return v
	}
}

func hasEvent(v *board.View, kind board.Kind) bool {
	for _, e := range v.Events {
		if e.Kind == kind {
			return true
		}
	}
	return false
}

// Six processes want one lock, the holder is stopped, and one node is dead. The
// page and the terminal say all three, and what comes of it.
func TestTopAndUIShowWhatIsWrong(t *testing.T) {
	c, holder := crowd(t)
	terminal := startOnTerminal(t, "top", "--every", "100ms")
	p := start(t, "ui", "--every", "100ms")
	p.says("token=")
	url := strings.TrimSpace(p.out.String())
	until := views(t, url)
	until("six claims on three nodes", func(v *board.View) bool {
		return len(v.Names) == 1 && v.Names[0].Wait == 5 && len(v.Names[0].Holders) == 1 && len(v.Problems) == 0 &&
			v.Ready == 3
	})
	holder.signal(syscall.SIGSTOP)
	require.NoError(t, c.Node(2).Kill())
	v := until("a dead node and a holder that does not renew",
		func(v *board.View) bool { return len(v.Problems) == 2 && v.Names[0].Late })
	who := fmt.Sprintf("process %d on ", holder.cmd.Process.Pid)
	assert.Contains(t, v.Problems[0], c.Node(2).Addr()+" is unreachable (")
	assert.Contains(t, v.Problems[1], "job: "+who)
	assert.Contains(t, v.Problems[1], " does not renew its lease; 5 waiting, the longest for ")
	assert.False(t, v.Nodes[2].Up)
	assert.Equal(t, "mutex", v.Names[0].Kind)
	assert.Contains(t, v.Names[0].Holders[0].Process, who)
	assert.True(t, hasEvent(&v, board.NodeDown))
	terminal.shows(v.Problems[0])
	terminal.shows("! job: " + who)
	terminal.shows(" does not renew its lease; 5 waiting, the longest for ")
	v = until("taken over", func(v *board.View) bool { return hasEvent(v, board.TakenOver) })
	assert.True(t, hasEvent(&v, board.Lost))
	assert.Equal(t, 4, v.Names[0].Wait)
	require.NoError(t, c.Node(2).Restart())
	until("the node is back", func(v *board.View) bool { return hasEvent(v, board.NodeUp) })
	p.signal(syscall.SIGINT)
	assert.Equal(t, 0, p.status(), &p.err)
	holder.signal(syscall.SIGCONT)
}

// More names than are looked at are counted, and those in demand are shown.
func TestUICountsManyNames(t *testing.T) {
	ns := startNodes(t, 1)
	q, err := quorate.Connect(t.Context(), ns.URLs())
	require.NoError(t, err)
	defer q.Close()
	for i := range 120 {
		once.New(q, fmt.Sprintf("done-%03d", i)).Do(func() {})
		if i%20 == 0 {
			m := mutex.New(q, fmt.Sprintf("held-%03d", i))
			m.Lock()
			defer m.Unlock()
		}
	}
	p := start(t, "ui", "--every", "100ms")
	p.says("token=")
	// A node that is late says nothing of a name: a later listing has it.
	v := views(t, strings.TrimSpace(p.out.String()))("the held ones in front", func(v *board.View) bool {
		return v.Counted && v.Total == 126 && len(v.Names) == mostFollowed &&
			strings.HasPrefix(v.Names[5].Name, "held-")
	})
	for i, r := range v.Names {
		assert.Equal(t, i < 6, strings.HasPrefix(r.Name, "held-"), r.Name)
	}
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.status(), &p.err)
}

func TestUIRefuses(t *testing.T) {
	t.Setenv("QUORATE_NODES", "127.0.0.1:1")
	for _, c := range []struct{ args, why string }{
		{"ui --listen 0.0.0.0:0", "can be reached from other machines"},
		{"ui --listen nonsense", "is not an address"},
		{"ui --every 1ms", "at least 100ms"},
		{"ui a b", "at most 1 arg"},
	} {
		status, out, errs := call(strings.Fields(c.args)...)
		assert.Equal(t, cli.ExitUsage, status, c.args)
		assert.Contains(t, errs, c.why)
		assert.Empty(t, out)
	}
}

// A request whose body never comes is answered, and its connection ends.
func TestUIEndsABodyThatNeverComes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q := e2e.Open(t, c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- servePage(ctx, io.Discard, q, l, "", time.Second) }()
	for _, head := range []string{"Content-Length: 1000000", "Content-Length: 1", "Transfer-Encoding: chunked"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", l.Addr(), head)
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(e2e.Patience)))
		answer, err := io.ReadAll(conn) // until the server closes it
		require.NoError(t, err, head)
		assert.Contains(t, string(answer), "413")
		_ = conn.Close()
	}
	cancel()
	require.NoError(t, e2e.Receive(t, served))
}
