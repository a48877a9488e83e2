package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

const (
	processes = 8
	each      = 200
)

// Eight processes each add one to the number in a file, two hundred times, with
// nothing but the lock between them.
func TestCounterFile(t *testing.T) {
	for _, c := range []struct {
		nodes  int
		faulty int // are killed in the middle, and started again without their memory
	}{
		{nodes: 3}, {nodes: 5}, {nodes: 3, faulty: 1}, {nodes: 5, faulty: 2},
	} {
		t.Run(fmt.Sprintf("%d servers, %d restarted empty", c.nodes, c.faulty), func(t *testing.T) {
			count(t, redistest.Start(t, c.nodes), c.faulty)
		})
	}
}

func count(t *testing.T, c *redistest.Cluster, faulty int) {
	const ttl = 5 * time.Second // a machine may stand still for a second, and a holder that does writes on
	e2e.Open(t, c, e2e.Timing(ttl))
	file := filepath.Join(t.TempDir(), "counter")
	require.NoError(t, os.WriteFile(file, []byte("0"), 0o600))
	tm := terms{Name: "counter", TTL: ttl, Guard: 2*ttl + 20*time.Millisecond}
	var workers []*process
	for range processes {
		workers = append(workers, startWorker(t, c, tm))
	}
	began := time.Now()
	for _, w := range workers {
		w.tell(t, fmt.Sprintf("count %d %s", each, file))
	}

	number := func() int {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		n, _ := strconv.Atoi(string(text)) // 0 while it is being written
		return n
	}
	for i := range faulty {
		require.True(t, e2e.Eventually(func() bool { return number() >= (i+1)*processes*each/10 }))
		require.NoError(t, c.Node(i).Kill())
	}
	if faulty > 0 {
		require.True(t, e2e.Eventually(func() bool { return number() >= processes*each/2 }),
			"it goes on without them")
	}
	for i := range faulty {
		require.NoError(t, c.Node(i).Restart())
	}
	if faulty > 0 {
		require.Less(t, number(), processes*each, "the restart came too late to be in the middle")
	}

	tokens := make([]uint64, processes*each+1) // by the number written with it
	for _, w := range workers {
		for {
			line := w.answer(t)
			if line == "done" {
				break
			}
			var token, n uint64
			_, err := fmt.Sscan(line, &token, &n)
			require.NoError(t, err, line)
			require.LessOrEqual(t, n, uint64(processes*each))
			require.Zero(t, tokens[n], "%d has been written twice", n)
			tokens[n] = token
		}
	}
	t.Logf("%d increments by %d processes in %v", processes*each, processes,
		time.Since(began).Round(time.Millisecond))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, strconv.Itoa(processes*each), string(text))
	for n := 1; n < len(tokens); n++ {
		require.Greater(t, tokens[n], tokens[n-1], "the token with which %d was written", n)
	}
	e2e.Clean(t, c)
}
