//go:build browser

package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/board"
	"github.com/quorate/quorate/cmd/quorate/internal/top"
)

// These tests need Chromium, and run by "make page". With QUORATE_PICTURES they
// write there what they have seen.

// browser is a headless Chromium with one page, driven by its DevTools protocol
// through two pipes.
type browser struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	session string
	last    int
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	theirs, to, err := os.Pipe()
	require.NoError(t, err)
	from, ours, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	cmd.ExtraFiles = []*os.File{theirs, ours} // 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start(), "install it: apt-get install chromium")
	_, _ = theirs.Close(), ours.Close()
	require.NoError(t, from.SetReadDeadline(time.Now().Add(2*time.Minute)))
	b := &browser{t: t, to: to, from: bufio.NewReader(from)}
	t.Cleanup(func() {
		b.session = ""
		b.call("Browser.close", nil)
		_ = cmd.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it has left
		_, _ = to.Close(), from.Close()
	})
	target := b.call("Target.createTarget", map[string]any{"url": "about:blank"})["targetId"]
	b.session = b.call("Target.attachToTarget",
		map[string]any{"targetId": target, "flatten": true})["sessionId"].(string)
	return b
}

// call calls a method and returns its result. Events are left out.
func (b *browser) call(method string, params map[string]any) map[string]any {
	b.t.Helper()
	b.last++
	message := map[string]any{"id": b.last, "method": method, "params": params}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	require.NoError(b.t, err)
	_, err = b.to.Write(append(text, 0))
	require.NoError(b.t, err)
	for {
		answer, err := b.from.ReadBytes(0)
		require.NoError(b.t, err, method)
		var a struct {
			ID     int
			Result map[string]any
			Error  *struct{ Message string }
		}
		require.NoError(b.t, json.Unmarshal(answer[:len(answer)-1], &a))
		if a.ID == b.last {
			require.Nil(b.t, a.Error, method)
			return a.Result
		}
	}
}

// eval returns the value of an expression of JavaScript.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	r := b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true})
	require.NotContains(b.t, r, "exceptionDetails", expression)
	return r["result"].(map[string]any)["value"]
}

func (b *browser) until(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); b.eval(expression) != true; time.Sleep(50 * time.Millisecond) {
		require.True(b.t, time.Now().Before(deadline), "never %s; the page says %s", expression,
			b.eval("document.body.innerText"))
	}
}

// shows waits until a part of the page says what, blanks apart.
func (b *browser) shows(id, what string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.getElementById(%q).innerText.replace(/\\s+/g, ' ').includes(%q)", id, what))
}

// look sets the size and the colours.
func (b *browser) look(width, height int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
	b.call("Emulation.setEmulatedMedia",
		map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
}

func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("QUORATE_PICTURES")
	if dir == "" {
		return
	}
	data, err := base64.StdEncoding.DecodeString(b.call("Page.captureScreenshot",
		map[string]any{"format": "png"})["data"].(string))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
}

// style is a change of style in a text for a terminal.
var style = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// pictureOfTop is what top shows of a view.
func (b *browser) pictureOfTop(v *board.View) {
	b.t.Helper()
	var m tea.Model = top.Model{}
	for _, msg := range []tea.Msg{tea.WindowSizeMsg{Width: 118, Height: 40}, *v} {
		m, _ = m.Update(msg)
	}
	text := html.EscapeString(m.View().Content)
	text = style.ReplaceAllStringFunc(text, func(s string) string {
		return map[string]string{
			"": "</span>", "1": "<span style='font-weight:bold'>", "2": "<span style='color:#999'>",
			"7":    "<span style='background:#ddd;color:#000'>",
			"1;31": "<span style='color:#ff7b72;font-weight:bold'>", "33": "<span style='color:#e3b341'>",
			"32": "<span style='color:#7ee787'>",
			"34": "<span style='color:#79a8ff'>", "35": "<span style='color:#d2a8ff'>",
			"36": "<span style='color:#56d4dd'>",
		}[style.FindStringSubmatch(s)[1]]
	})
	page := "<meta charset=utf-8><body style='margin:0;background:#16181b'><pre " +
		"style='margin:12px;color:#e6e8ea;font:14px/1.35 \"DejaVu Sans Mono\",monospace'>" + text
	b.call("Page.navigate",
		map[string]any{"url": "data:text/html;base64," + base64.StdEncoding.EncodeToString([]byte(page))})
	b.until("document.readyState === 'complete' && document.querySelector('pre') !== null")
	b.look(1030, 790, "dark")
	b.picture("top.png")
}

// One sees the dead node, the holder that does not renew, and the wait; and by
// a key the queue and what each node says. Nothing is wider than a phone, and
// the browser objects to nothing.
func TestPageInABrowser(t *testing.T) {
	c, holder := crowd(t)
	evil := start(t, "lock", "<img src=x onerror=alert(1)>", "--", "sh", "-c", "echo in; sleep 60")
	evil.says("in")
	p := start(t, "ui", "--every", "200ms")
	p.says("token=")
	b := startBrowser(t)
	b.call("Page.enable", nil)
	b.call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": `window.wrong = [];
		addEventListener("error", (e) => wrong.push("error: " + e.message));
		addEventListener("securitypolicyviolation", (e) => wrong.push("policy: " + e.violatedDirective));
		window.alert = () => wrong.push("alert");`})
	b.look(1100, 760, "light")
	url := strings.TrimSpace(p.out.String())
	b.call("Page.navigate", map[string]any{"url": url})
	b.until("document.readyState === 'complete' && document.getElementById('names') !== null")
	b.shows("names", "job mutex process")
	b.shows("summary", "3 of 3 nodes are ready, 2 are needed · 2 names in use · 5 waiting")
	assert.Equal(t, true, b.eval("document.getElementById('problems').offsetHeight === 0"))
	holder.signal(syscall.SIGSTOP)
	defer holder.signal(syscall.SIGCONT)
	require.NoError(t, c.Node(2).Kill())
	b.shows("problems", fmt.Sprintf("%s is unreachable (", c.Node(2).Addr()))
	b.shows("problems", fmt.Sprintf("job: process %d on ", holder.cmd.Process.Pid))
	b.shows("problems", "does not renew its lease; 5 waiting, the longest for ")
	b.shows("names", "not renewed 5 ")
	b.shows("nodes", "⚠ unreachable")
	b.until("document.querySelectorAll('#picture .away').length === 1") // the node's lane
	b.until("document.querySelectorAll('#picture .c0').length >= 1")    // the holder's
	b.look(1100, 760, "dark")
	assert.Equal(t, "rgb(22, 24, 27)", b.eval("getComputedStyle(document.body).backgroundColor"))
	b.look(390, 844, "light")
	b.until("document.documentElement.scrollWidth <= innerWidth")
	b.look(1100, 760, "light")
	b.eval(`document.querySelector("#names button").focus()`)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": "Enter", "code": "Enter",
		"windowsVirtualKeyCode": 13, "text": "\r"})
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": "Enter",
		"code": "Enter", "windowsVirtualKeyCode": 13})
	b.shows("queue", "waits 5 process")
	b.until("document.querySelectorAll('#processes .lane').length === 7") // an axis, and six processes
	b.until("document.querySelectorAll('#processes .wait').length >= 5")
	b.eval(`document.querySelector("#queue .token").click()`)
	b.until(`document.querySelector("#queue .token").textContent === document.querySelector("#queue .token").title`)
	b.shows("says", "⚠ dial tcp "+c.Node(2).Addr())
	assert.Equal(t, "true", b.eval(`document.querySelector("#names button").getAttribute("aria-expanded")`))
	assert.Equal(t, "BUTTON", b.eval("document.activeElement.tagName"), "the focus stays")
	b.shows("events", "taken over")
	b.eval(`document.getElementById("search").value = "IMG SRC"; document.getElementById("search").dispatchEvent(new Event("input"))`)
	b.until(`document.querySelectorAll("#names tbody tr").length === 1`)
	b.shows("names", "<img src=x onerror=alert(1)>")
	assert.Equal(t, 0.0, b.eval("document.images.length"))
	p.signal(syscall.SIGINT)
	require.Equal(t, 0, p.status(), &p.err)
	b.shows("state", "does not answer")
	assert.Equal(t, []any{}, b.eval("wrong"))
}
