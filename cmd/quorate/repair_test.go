package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/once"
)

// shortGuard is the guard time of TestRepairGoesOnAfterAKill.
const shortGuard = "6s"

// records is how many records a server has.
func records(t *testing.T, s *redistest.Server) int {
	t.Helper()
	keys, err := s.Client().Keys(t.Context(), "quorate:{job *:r").Result()
	require.NoError(t, err)
	return len(keys)
}

// job is the name of a run that is recorded.
func job(i int) string { return fmt.Sprint("job ", i) }

// recordJobs records n runs.
func recordJobs(t *testing.T, list []string, n int) {
	t.Helper()
	guard, err := time.ParseDuration(shortGuard)
	require.NoError(t, err)
	q := e2e.OpenAt(t, list, quorate.WithTTL(time.Second), quorate.WithGuard(guard))
	require.True(t, e2e.Eventually(func() bool { return q.Bootstrap(within(t)) == nil }))
	var all sync.WaitGroup
	const workers = 16
	for w := range workers {
		all.Go(func() {
			for i := w; i < n; i += workers {
				for errors.Is(once.New(q, job(i)).DoContext(t.Context(), func(context.Context) error { return nil }),
					quorate.ErrNoQuorum) {
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, q.Close())
}

// A command that repairs a node is killed when it has brought some of the
// records. "quorate check" says of another process how many it has left, and
// the next command brings the rest.
func TestRepairGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	const runs = 1000
	c := redistest.Start(t, 3)
	node := c.Node(2)
	proxies, through := proxy.Start(t, c.URLs()[2:], proxy.Fault{})
	list := append(c.URLs()[:2:2], through...)
	recordJobs(t, list, runs)
	check := []string{"check", "--guard", shortGuard, "--nodes", strings.Join(list, ",")}
	// Or the repair ends before it is seen.
	proxies[0].Impose(proxy.Both, proxy.Any, proxy.Fault{Delay: 60 * time.Millisecond})
	lateness.Undisturbed(t, func() error {
		require.NoError(t, node.Client().FlushAll(t.Context()).Err())
		p := start(t, append(check, "--wait")...)
		// Another command that connects now would repair the node itself, so
		// the turn is read from the node.
		left := 0
		if !e2e.Eventually(func() bool {
			_, count, _ := strings.Cut(node.Client().Get(t.Context(), "quorate:{}:turn").Val(), " ")
			left, _ = strconv.Atoi(count)
			return left > 0
		}) {
			return fmt.Errorf("no repair is seen; the command says %q and %q", &p.out, &p.err)
		}
		_, out, _ := call(check...)
		require.NoError(t, p.cmd.Process.Kill())
		<-p.ended
		has := records(t, node)
		t.Logf("%d records were left, the node had %d when the command was killed", left, has)
		if _, count, found := strings.Cut(out, "being repaired, "); !found || !strings.Contains(count, " record") {
			return fmt.Errorf("the command does not say how many records are left: %s", out)
		}
		if has == 0 || has == runs {
			return fmt.Errorf("the node has %d records of %d when the command is killed", has, runs)
		}
		return nil
	})
	proxies[0].Impose(proxy.Both, proxy.Any, proxy.Fault{})
	p := start(t, append(check, "--wait")...)
	require.Equal(t, 0, p.status(), "%s%s", &p.out, &p.err)
	assert.Equal(t, runs, records(t, node))
	assert.True(t, strings.HasSuffix(e2e.Marker(t.Context(), node), " w"), "the node is caught up")
	_, out, _ := call(check...)
	assert.NotContains(t, out, "records left")
}
