package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/board"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// scene is six processes, a stopped holder, and a dead node.
func scene() board.View {
	claim := func(pid int, left float64) board.Claim {
		return board.Claim{Process: fmt.Sprintf("process %d on web-1 (billing)", pid), Token: fmt.Sprint(pid),
			Since: now.Add(-9 * time.Second), Left: left, Votes: 2}
	}
	job := board.Row{Name: "job", Kind: "mutex", Holders: []board.Claim{claim(1, 2.5)},
		Wait: 5, Waited: 7, Late: true,
		Nodes: []board.Says{{Node: "a:1", Tokens: []string{"1"}, Queued: 6}, {Node: "b:1", Err: "refused"}}}
	job.Holders[0].Late = true
	for i := range 5 {
		job.Waiters = append(job.Waiters, claim(i+2, 8))
	}
	other := board.Row{Name: "nightly", Kind: "once", Record: "done"}
	return board.View{
		At: now, Quorum: 2, Ready: 2, Total: 2, Counted: true, Names: []board.Row{job, other},
		Summary: "2 of 2 nodes are ready, 2 are needed",
		Nodes: []board.Node{{Name: "a:1", State: "ready", Up: true},
			{Name: "b:1", State: "unreachable", Cause: "connection refused"}},
		Problems: []string{"b:1 is unreachable (connection refused)",
			"job: process 1 on web-1 (billing) does not renew its lease; 5 waiting, the longest for 7.0s"},
		Events: []board.Event{{At: now.Add(-3 * time.Second), Kind: board.NodeDown,
			Subject: "b:1", Text: "unreachable"}},
	}
}

// screen is the model after some messages: keys are given by their names.
func screen(t *testing.T, width, height int, all ...any) (m Model, shown string) {
	t.Helper()
	m, _ = step(Model{}, tea.WindowSizeMsg{Width: width, Height: height})
	for _, msg := range all {
		if key, ok := msg.(string); ok {
			msg = press(key)
		}
		m, _ = step(m, msg)
	}
	shown = ansi.Strip(m.View().Content)
	lines := strings.Split(shown, "\n")
	assert.LessOrEqual(t, len(lines), max(1, height))
	for _, l := range lines {
		assert.LessOrEqual(t, ansi.StringWidth(l), width)
	}
	return m, shown
}

func step(m Model, msg tea.Msg) (Model, tea.Cmd) {
	next, cmd := m.Update(msg)
	return next.(Model), cmd
}

func press(key string) tea.KeyPressMsg {
	codes := map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "enter": tea.KeyEnter, "esc": tea.KeyEscape,
		"backspace": tea.KeyBackspace, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp}
	if code, ok := codes[key]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	return tea.KeyPressMsg{Code: []rune(key)[0], Text: key}
}

// One look shows the node, the holder and the wait.
func TestFirstSight(t *testing.T) {
	_, shown := screen(t, 140, 30, scene())
	assert.Contains(t, shown, "2 of 2 nodes are ready, 2 are needed · 2 names in use · 5 waiting")
	assert.Contains(t, shown, "! b:1 is unreachable (connection refused)")
	assert.Contains(t, shown,
		"! job: process 1 on web-1 (billing) does not renew its lease; 5 waiting, the longest for 7.0s")
	assert.Regexp(t, `job +mutex +process 1 on web-1 \(billing\) +9.0s ago +! 2.5s, not renewed +5 +7.0s`, shown)
	assert.Regexp(t, `nightly +once +done`, shown)
	assert.Regexp(t, `b:1 +! unreachable +connection refused`, shown)
	assert.Regexp(t, `3.0s ago  node down   b:1: unreachable`, shown)
	_, shown = screen(t, 140, 30)
	assert.Contains(t, shown, "asking the nodes")
}

func TestKeys(t *testing.T) {
	m, shown := screen(t, 140, 40, scene(), "enter")
	require.True(t, m.open)
	assert.Regexp(t, `holds +process 1 on`, shown)
	assert.Regexp(t, `waits 5 +process 6 on`, shown)
	assert.Regexp(t, `b:1 +- +- +! refused`, shown)
	m, shown = screen(t, 140, 40, scene(), "enter", "esc")
	assert.False(t, m.open)
	assert.NotContains(t, shown, "waits 5")
	for chosen, keys := range map[string][]any{
		"job": {"down", "up"}, "nightly": {"down", "down", "down"},
	} {
		m, _ = screen(t, 140, 40, append([]any{scene()}, keys...)...)
		assert.Equal(t, chosen, m.chosen)
	}
	m, shown = screen(t, 140, 40, scene(), "down", "enter", "enter", "/", "J", "x", "backspace",
		"q", "backspace", "O", "enter")
	assert.Equal(t, "JO", m.filter)
	assert.Equal(t, "job", m.chosen, "the other is not shown")
	assert.NotContains(t, shown, "nightly")
	m, shown = screen(t, 140, 40, scene(), "/", "z", "z", "esc")
	assert.Empty(t, m.filter)
	assert.Contains(t, shown, "nightly")
	_, shown = screen(t, 140, 40, scene(), "/", "z", "z")
	assert.Contains(t, shown, "no name")
	_, shown = screen(t, 140, 40, scene(), "enter", board.View{Counted: true})
	assert.Contains(t, shown, "job: not in use")
}

func TestQuit(t *testing.T) {
	m, _ := screen(t, 80, 24, scene())
	_, cmd := step(m, press("q"))
	require.NotNil(t, cmd)
	assert.IsType(t, tea.QuitMsg{}, cmd())
	_, cmd = step(m, tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	require.NotNil(t, cmd)
	m.typing = true
	next, cmd := step(m, press("q"))
	assert.Nil(t, cmd)
	assert.Equal(t, "q", next.filter)
}

// The screen keeps to its size, and the chosen name in sight.
func TestSizes(t *testing.T) {
	v := scene()
	for i := range 150 {
		v.Names = append(v.Names, board.Row{Name: fmt.Sprintf("name-%03d-%s", i, strings.Repeat("長", 30)),
			Kind: "mutex"})
		v.Events = append(v.Events, v.Events[0])
	}
	v.Problems = append(v.Problems, v.Problems[1], v.Problems[1], v.Problems[1], v.Problems[1], v.Problems[1])
	keys := []any{v}
	for range 9 {
		keys = append(keys, "pgdown")
	}
	for _, size := range [][2]int{{0, 0}, {1, 1}, {20, 5}, {40, 12}, {80, 24}, {200, 60}} {
		screen(t, size[0], size[1], append(keys, "enter")...)
		m, shown := screen(t, size[0], size[1], keys...)
		require.Regexp(t, "^name-088", m.chosen)
		if size[1] >= 24 {
			assert.Contains(t, shown, "name-088")
		}
	}
}
