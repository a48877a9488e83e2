package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/board"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A node whose SCAN does not end keeps no view from being shown.
func TestWatchWithoutEndOfAListing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, 1)
	var cursor atomic.Int64
	q := e2e.OpenAt(t, []string{"redis://" + redistest.Between(t, s.Node(0).Addr(), func(words []string) string {
		if !strings.EqualFold(words[0], "SCAN") {
			return ""
		}
		text := strconv.FormatInt(cursor.Add(1), 10)
		return fmt.Sprintf("*2\r\n$%d\r\n%s\r\n*0\r\n", len(text), text)
	})}, e2e.Timing(4*time.Second))
	require.True(t, e2e.Eventually(func() bool { return q.Bootstrap(t.Context()) == nil }))
	views, over := make(chan board.View), make(chan struct{})
	go func() {
		defer close(over)
		watch(t.Context(), q, "", 100*time.Millisecond, func(v board.View) {
			select {
			case views <- v:
			case <-t.Context().Done():
			}
		})
	}()
	t.Cleanup(func() { <-over })
	first := e2e.Receive(t, views)
	assert.Equal(t, 1, first.Ready)
	assert.True(t, e2e.Receive(t, views).At.After(first.At))
}

// While a round takes long the last view is shown again, with its age.
func TestAgeOfAView(t *testing.T) {
	t.Parallel()
	round, views := make(chan board.Observation), make(chan board.View)
	go await(round, board.View{At: time.Now().Add(-time.Minute)}, 0, func(v board.View) { views <- v })
	v := e2e.Receive(t, views)
	require.Len(t, v.Problems, 1)
	assert.Regexp(t, `^what is shown is 6\d s old`, v.Problems[0])
	round <- board.Observation{}
}

// A line for each change, until a signal ends it.
func TestWatchCommand(t *testing.T) {
	ns := startNodes(t, 3)
	text, doc := start(t, "watch", "job"), start(t, "watch", "job", "--json")
	text.says("  free, 0 waiting\n")
	doc.says("\n")
	holder := start(t, "lock", "job", "--owner", "first", "--", "sh", "-c", "echo in; sleep 60")
	holder.says("in")
	text.says(fmt.Sprintf("  process %d on ", holder.cmd.Process.Pid))
	text.says("(first), token ")
	waiter := start(t, "lock", "job", "--", "sh", "-c", "echo in; sleep 60")
	text.says(", 1 waiting\n")
	doc.says(fmt.Sprintf(`"pid":%d`, waiter.cmd.Process.Pid))
	holder.signal(syscall.SIGTERM)
	waiter.says("in")
	text.says(fmt.Sprintf("  process %d on ", waiter.cmd.Process.Pid))
	ns.Stop(0)
	ns.Stop(1)
	text.says("  unknown: no quorum")
	doc.says(`"err":"`)

	for p, s := range map[*proc]os.Signal{text: os.Interrupt, doc: syscall.SIGTERM} {
		p.signal(s)
		assert.Equal(t, 0, p.status(), &p.err)
		assert.Empty(t, p.err.String())
	}
	for _, line := range lines(&text.out) {
		assert.Regexp(t, `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}  (free|process|unknown)`, line)
	}
	for _, line := range lines(&doc.out) {
		var r struct {
			At      time.Time
			Holders []struct{ Token string }
			Waiters []struct{ Token string }
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r), line)
		assert.WithinDuration(t, time.Now(), r.At, time.Minute)
	}
	for _, wrong := range [][]string{{"watch"}, {"watch", ""}, {"watch", "a", "b"}} {
		status, _, errs := call(wrong...)
		assert.Equal(t, cli.ExitUsage, status, errs)
	}
}
