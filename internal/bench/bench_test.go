package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == silentCommand { // the process of a bench
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// BenchmarkLock is for profiles and for allocations per lock and unlock; for
// times side by side use the command, whose libraries take turns.
func BenchmarkLock(b *testing.B) {
	for _, n := range []int{1, 3, 5} {
		c := redistest.Start(b, n)
		for _, l := range multiple() {
			b.Run(fmt.Sprintf("%s/N=%d", benchName(l), n), func(b *testing.B) {
				m := openLibrary(b, l, c).Mutex(b.Name())
				b.ReportAllocs()
				for b.Loop() {
					lockUnlock(b, m)
				}
			})
		}
	}
}

// BenchmarkNames is 64 goroutines on their own names.
func BenchmarkNames(b *testing.B) {
	c := redistest.Start(b, 5)
	for _, l := range multiple() {
		b.Run(benchName(l), func(b *testing.B) {
			client := openLibrary(b, l, c)
			t := &team{scenario: scenario{Clients: 64}}
			for i := range 64 {
				t.lockers = append(t.lockers, client.Mutex(b.Name()+strconv.Itoa(i)))
			}
			b.ReportAllocs()
			b.ResetTimer()
			t.each(func(i int, m libraries.Locker) {
				for ; i < b.N && !b.Failed(); i += t.Clients {
					lockUnlock(b, m)
				}
			})
		})
	}
}

// multiple are the libraries that know more than one node.
func multiple() []libraries.Library {
	return lo.Reject(libraries.Of(libraries.Working),
		func(l libraries.Library, _ int) bool { return l.OneNode || l.Name == report.SyncName })
}

func benchName(l libraries.Library) string {
	return strings.NewReplacer(" (", "-", ")", "").Replace(l.Name)
}

func openLibrary(b *testing.B, l libraries.Library, c *redistest.Cluster) libraries.Client {
	b.Helper()
	client, err := l.Open(b.Context(), servers.Direct(c))
	require.NoError(b, err)
	b.Cleanup(client.Close)
	return client
}

func lockUnlock(b *testing.B, m libraries.Locker) {
	if err := m.Lock(b.Context()); err != nil {
		b.Error(err)
	}
	if err := m.Unlock(b.Context()); err != nil {
		b.Error(err)
	}
}

// TestSmoke runs the command's benches, each for a moment: those that wait for
// what cannot be hurried (a hung node, a long queue, a retention) not all.
func TestSmoke(t *testing.T) {
	redistest.Start(t, 1) // skips, or fails, without redis-server
	dir := t.TempDir()
	doc := filepath.Join(dir, "doc.md")
	require.NoError(t, os.WriteFile(doc,
		[]byte("a\n<!-- bench:free -->\nold\n<!-- /bench -->\nb\n<!-- bench:other -->\nkept\n<!-- /bench -->\n"),
		0o600))
	require.NoError(t,
		execute([]string{"-short", "-run", "^(uncontended/[135]|names/8|queue/1$|handover|stations)",
			"-json", dir + "/out.json", "-plots", dir + "/plots", "-md", doc}))
	// Without redsync, which takes its time for these.
	require.NoError(t,
		execute([]string{"-short", "-leases", "100", "-names", "100", "-libs", "^(quorate|floor|rueidis|bsm|sync)",
			"-run",
			"^(queue/8|queue-one|goroutines|burst|outage/(killed|slow)|read-mostly|semaphore|local|held|renewal|permits|seen/1|ls|shards|capacity)"}))

	r, err := report.ReadResults(dir + "/out.json")
	require.NoError(t, err)
	require.NotEmpty(t, r.Redis)
	require.NotEmpty(t, r.Benches)
	for _, b := range r.Benches {
		require.NotEmpty(t, b.Figures[b.Show[0]])
	}
	text, err := os.ReadFile(doc)
	require.NoError(t, err)
	require.Contains(t, string(text), "| 1 client, N=5 | µs per lock and unlock |")
	require.NotContains(t, string(text), "old")
	require.Contains(t, string(text), "kept")
	require.FileExists(t, dir+"/plots/nodes.svg")
	require.FileExists(t, dir+"/plots/nodes-dark.svg")
	require.FileExists(t, dir+"/plots/flame-5-dark.svg")

	// What is drawn from a file is what was drawn from the run.
	require.NoError(t, execute([]string{"-from", dir + "/out.json", "-plots", dir + "/again"}))
	for _, plot := range []string{"nodes.svg", "flame-1.svg"} {
		drawn, err := os.ReadFile(filepath.Join(dir, "plots", plot))
		require.NoError(t, err)
		require.NotContains(t, string(drawn), "#-", "colours that a browser knows")
		again, err := os.ReadFile(filepath.Join(dir, "again", plot))
		require.NoError(t, err)
		require.Equal(t, string(drawn), string(again))
	}
}

func TestFlags(t *testing.T) {
	require.ErrorContains(t, execute([]string{"-run", "no such bench"}), "no bench matches")
	require.ErrorContains(t, execute([]string{"-rounds", "0"}), "must be positive")
	require.Error(t, execute([]string{"-from", "no such file"}))
}

// What a document says about its tables is of the run of all of them.
func TestAboutAllTables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	r := &report.Results{Date: "today", Benches: []report.Result{{Group: "a"}}}
	for text, filled := range map[string]bool{
		"<!-- bench:a -->\n<!-- /bench -->\n":                                    true,
		"<!-- bench:a -->\n<!-- /bench -->\n<!-- bench:b -->\n<!-- /bench -->\n": false,
	} {
		require.NoError(t, os.WriteFile(file, []byte("<!-- bench:about -->\n<!-- /bench -->\n"+text), 0o600))
		require.NoError(t, r.Fill(file))
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, filled, strings.Contains(string(got), "today"), text)
	}
}

// Each figure that a table shows has a name there.
func TestUnits(t *testing.T) {
	s, err := parse(nil)
	require.NoError(t, err)
	for _, b := range allBenches(s) {
		for _, figure := range b.Show {
			require.Contains(t, report.Units, figure, b.Name)
		}
	}
}
