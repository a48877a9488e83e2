package main

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

// exported returns the page after holds, failures and a loss: each series as
// its name, with its labels.
func exported(t *testing.T) (series map[string][]string) {
	series = map[string][]string{}
	synctest.Test(t, func(t *testing.T) {
		opts, page, err := instrument()
		require.NoError(t, err)
		c := quoratetest.New(t, 3)
		q := c.Quorum(opts...)
		require.NoError(t, leader.New(q, "e").Campaign(t.Context(), ""))
		m := mutex.New(q, "order:1")
		m.Lock()
		require.False(t, m.TryLock())
		m.Unlock()
		m.Lock()
		for i := range 2 {
			c.Stop(i)
		}
		time.Sleep(20 * time.Second) // both holds are lost
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, mutex.New(q, "order:2").LockContext(ctx), quorate.ErrNoQuorum)

		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		assert.Contains(t, w.Body.String(), `quorate_name="order"`)
		for line := range strings.Lines(w.Body.String()) {
			if name := regexp.MustCompile(`^\w+`).FindString(line); name != "" {
				for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(line, -1) {
					series[name] = append(series[name], l[1])
				}
				series[name] = append(series[name], "job", "instance") // by Prometheus
			}
		}
	})
	return series
}

// query checks that an expression can be parsed, and that each metric and each
// label in it is exported.
func query(t *testing.T, series map[string][]string, expr string) {
	t.Helper()
	// Grafana puts its variables in before it asks.
	expr = strings.NewReplacer("$__rate_interval", "5m", "$job", ".*").Replace(expr)
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	require.NoError(t, err, expr)
	var labels []string
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			require.Contains(t, series, n.Name, expr)
			labels = series[n.Name]
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel {
					assert.Contains(t, labels, m.Name, expr)
				}
			}
		}
		return nil
	})
	require.NotEmpty(t, labels, expr)
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok {
			for _, l := range a.Grouping {
				assert.Contains(t, labels, l, expr)
			}
		}
		return nil
	})
}

// A ruleFile is a file of alert rules as Prometheus documents it.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr         string
			For                 model.Duration
			Labels, Annotations map[string]string
		}
	}
}

// The rules have the fields that Prometheus knows, its parser takes their
// expressions, and they use what is exported.
func TestAlerts(t *testing.T) {
	f, err := os.Open("../../dashboards/alerts.yml")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	var rules ruleFile
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	require.NoError(t, d.Decode(&rules))
	series := exported(t)
	n := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			query(t, series, r.Expr)
			assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
			assert.NotEmpty(t, r.Annotations["description"], r.Alert)
			for _, l := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(r.Annotations["summary"],
				-1) {
				assert.Contains(t, r.Expr, l[1], "a label that the expression keeps")
			}
			n++
		}
	}
	assert.GreaterOrEqual(t, n, 5)
}

// dashboard is what the tests need of it.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("../../dashboards/quorate.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// Each panel of the dashboard asks for what is exported, and each metric has a
// panel.
func TestDashboard(t *testing.T) {
	series := exported(t)
	var all []string
	for _, p := range readDashboard(t).Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, q := range p.Targets {
			query(t, series, q.Expr)
			for _, l := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				assert.Contains(t, q.Expr, l[1], "a label that the expression keeps")
			}
			all = append(all, q.Expr)
		}
	}
	for name := range series {
		base := regexp.MustCompile(`_(sum|count|bucket)$`).ReplaceAllString(name, "")
		if strings.HasPrefix(name, "quorate_") {
			assert.True(t, slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, base) }), name)
		}
	}
}
