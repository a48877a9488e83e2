//go:build prometheus

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
)

// These tests need prometheus and promtool, and run by "make alerts".

// promtool takes the rules, and each of them fires when it should.
func TestPromtool(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "../../dashboards/alerts.yml"},
		{"test", "rules", "../../dashboards/alerts_test.yml"}} {
		out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}
}

// promServer is a Prometheus that reads the rules, and a page every 200 ms.
type promServer struct {
	t   *testing.T
	api string
}

func startPrometheus(t *testing.T, page string) *promServer {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs("../../dashboards/alerts.yml")
	require.NoError(t, err)
	config := fmt.Sprintf(`
global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms}
rule_files: [%q]
scrape_configs: [{job_name: service, static_configs: [{targets: [%q]}]}]
`, rules, strings.TrimPrefix(page, "http://"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	var log bytes.Buffer
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start(), "install it: apt-get install prometheus")
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return &promServer{t, "http://" + addr + "/api/v1/"}
}

// get asks the API, and reports whether that has answered.
func (p *promServer) get(path string, data any) bool {
	resp, err := http.Get(p.api + path)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	return json.NewDecoder(resp.Body).Decode(&answer) == nil && answer.Status == "success"
}

// value returns what a query finds first; not a number: nothing.
func (p *promServer) value(expr string) float64 {
	var found struct {
		Result []struct{ Value [2]any }
	}
	if !p.get("query?query="+url.QueryEscape(expr), &found) || len(found.Result) == 0 {
		return math.NaN()
	}
	v, err := strconv.ParseFloat(found.Result[0].Value[1].(string), 64)
	require.NoError(p.t, err)
	return v
}

// becomes waits until an alert is in a state, and no rule has failed.
func (p *promServer) becomes(alert, state string) {
	p.t.Helper()
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, State, Health, LastError string }
		}
	}
	require.True(p.t, e2e.Eventually(func() bool {
		found := false
		if !p.get("rules", &rules) {
			return false
		}
		for _, r := range rules.Groups[0].Rules {
			require.NotEqual(p.t, "err", r.Health, "%s: %s", r.Name, r.LastError)
			found = found || r.Name == alert && r.State == state && r.Health == "ok"
		}
		return found
	}), "%s is never %s: %+v", alert, state, &rules)
}

// A real Prometheus loads the rules and reads a service. Each panel of the
// dashboard has a value, the first hold that is lost raises the alarm, and
// so does a node that dies.
func TestPrometheus(t *testing.T) {
	opts, page, err := instrument()
	require.NoError(t, err)
	s := httptest.NewServer(page)
	t.Cleanup(s.Close)
	p := startPrometheus(t, s.URL)
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, opts...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, leader.New(q, "e").Campaign(ctx, ""))
	work := make(chan struct{})
	go func() {
		defer close(work)
		m := mutex.New(q, "order:1")
		for ctx.Err() == nil {
			_ = m.Do(ctx, func(context.Context) error {
				assert.False(t, m.TryLock())
				return nil
			})
		}
	}()
	defer func() { cancel(); <-work }()
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			expr := strings.NewReplacer("$__rate_interval", "10s", "$job", ".*").Replace(target.Expr)
			require.True(t, e2e.Eventually(func() bool { return !math.IsNaN(p.value(expr)) }),
				"%s: %s has no value", panel.Title, expr)
		}
	}
	assert.Equal(t, 3.0, p.value("sum(quorate_node_up)"))
	assert.Equal(t, 1.0, p.value("quorate_leader"))

	p.becomes("QuorateHoldLost", "inactive")
	m := mutex.New(q, "short", quorate.WithTTL(e2e.Patience/20),
		quorate.WithNodeTimeout(e2e.Patience/80), quorate.WithoutRenewal())
	require.NoError(t, m.LockContext(ctx))
	e2e.Receive(t, m.Lease().Context().Done())
	m.Unlock()
	p.becomes("QuorateHoldLost", "firing")

	p.becomes("QuorateNodeDown", "inactive")
	require.NoError(t, c.Node(0).Kill())
	p.becomes("QuorateNodeDown", "pending")
	p.becomes("QuorateNoQuorum", "inactive")
	require.NoError(t, c.Node(1).Kill())
	p.becomes("QuorateNoQuorum", "pending")
}
