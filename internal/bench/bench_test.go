package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/redistest"
)

// BenchmarkLock is for profiles and for allocations per lock and unlock; for
// times side by side use the command, whose libraries take turns.
func BenchmarkLock(b *testing.B) {
	for _, n := range []int{1, 3, 5} {
		c := redistest.Start(b, n)
		for _, l := range libraries(working) {
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
	for _, l := range libraries(working) {
		b.Run(benchName(l), func(b *testing.B) {
			client := openLibrary(b, l, c)
			t := &team{scenario: scenario{Clients: 64}}
			for i := range 64 {
				t.lockers = append(t.lockers, client.Mutex(b.Name()+strconv.Itoa(i)))
			}
			b.ReportAllocs()
			b.ResetTimer()
			t.each(func(i int, m locker) {
				for ; i < b.N && !b.Failed(); i += t.Clients {
					lockUnlock(b, m)
				}
			})
		})
	}
}

func benchName(l library) string { return strings.NewReplacer(" (", "-", ")", "").Replace(l.name) }

func openLibrary(b *testing.B, l library, c *redistest.Cluster) client {
	b.Helper()
	client, err := l.open(b.Context(), c)
	require.NoError(b, err)
	b.Cleanup(client.Close)
	return client
}

func lockUnlock(b *testing.B, m locker) {
	if err := m.Lock(b.Context()); err != nil {
		b.Error(err)
	}
	if err := m.Unlock(b.Context()); err != nil {
		b.Error(err)
	}
}

// TestSmoke runs the command's scenarios, each for a moment.
func TestSmoke(t *testing.T) {
	redistest.Start(t, 1) // skips, or fails, without redis-server
	dir := t.TempDir()
	require.NoError(t, run([]string{"-short", "-run", "^(uncontended|names/64|queue|read-mostly|semaphore)", "-json", dir + "/out.json", "-md", dir + "/out.md"}))
	require.FileExists(t, dir+"/out.json")
	require.FileExists(t, dir+"/out.md")
	require.Error(t, run([]string{"-run", "no such scenario"}))
	require.Error(t, run([]string{"-rounds", "0"}))
}
