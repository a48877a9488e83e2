package e2e_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/health"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// refusal is a way in which a server refuses every write and answers all else.
type refusal struct {
	says, remedy string
	begin, end   func(t *testing.T, s *redistest.Server)
}

func configSet(name, value string) func(*testing.T, *redistest.Server) {
	return func(t *testing.T, s *redistest.Server) {
		require.NoError(t, s.Client().ConfigSet(context.Background(), name, value).Err())
	}
}

func acl(rules ...any) func(*testing.T, *redistest.Server) {
	return func(t *testing.T, s *redistest.Server) {
		require.NoError(t, s.Client().Do(context.Background(),
			append([]any{"ACL", "SETUSER", "default"}, rules...)...).Err())
	}
}

// saves has a server write a snapshot, and waits for how that ends.
func saves(t *testing.T, s *redistest.Server, status string) {
	require.True(t, e2e.Eventually(func() bool {
		_ = s.Client().BgSave(context.Background()).Err() // one may be under way
		info := s.Client().InfoMap(context.Background(), "persistence")
		return info.Item("Persistence", "rdb_last_bgsave_status") == status
	}))
}

var waysToRefuse = map[string]refusal{
	"too few replicas": {
		says: "NOREPLICAS", remedy: "lower its min-replicas-to-write",
		begin: configSet("min-replicas-to-write", "1"), end: configSet("min-replicas-to-write", "0"),
	},
	"maxmemory": {
		says: "OOM", remedy: "raise that server's maxmemory",
		begin: configSet("maxmemory", "1"), end: configSet("maxmemory", "0"),
	},
	"a full disk": {
		says: "MISCONF", remedy: "free space on its disk",
		begin: func(t *testing.T, s *redistest.Server) {
			require.NoError(t, os.Mkdir(filepath.Join(s.Dir(), "dump.rdb"), 0o700))
			configSet("save", "3600 1")(t, s)
			saves(t, s, "err")
		},
		end: func(t *testing.T, s *redistest.Server) {
			require.NoError(t, os.Remove(filepath.Join(s.Dir(), "dump.rdb")))
			saves(t, s, "ok")
		},
	},
	"a right taken away": {
		says: "NOPERM", remedy: "docs/reference/security.md",
		begin: acl("-evalsha"), end: acl("+@all"),
	},
}

// refusing keeps the events of nodes that refuse writes.
type refusing struct {
	mu  sync.Mutex
	all []string
}

func (r *refusing) Observe(e quorate.Event) {
	if e.Kind == quorate.EventNodeRefuses || e.Kind == quorate.EventNodeAccepts {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, string(e.Kind)+" "+e.Node)
	}
}

func (r *refusing) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

func readiness(q *quorate.Quorum) (status int, body string) {
	w := httptest.NewRecorder()
	health.Ready(q).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Code, w.Body.String()
}

// A node that refuses every write is not ready, and is named with a remedy in
// Check, in the log, in an event and to a probe.
func TestNodeThatRefusesWrites(t *testing.T) {
	t.Parallel()
	for name, r := range waysToRefuse {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusesWrites(t, r)
		})
	}
}

func refusesWrites(t *testing.T, r refusal) {
	c := redistest.Start(t, 3)
	ctx := deadline(t)
	var log e2e.Log
	events := &refusing{}
	q := e2e.Open(t, c, log.Option(), quorate.WithObserver(events))
	idle := e2e.OpenAt(t, c.URLs()) // uses no lock
	report, err := q.Check(ctx)
	require.NoError(t, err)
	require.True(t, report.MayRestart)
	require.True(t, e2e.Eventually(func() bool { status, _ := readiness(idle); return status == http.StatusOK }))

	first := c.Node(0).Addr()
	r.begin(t, c.Node(0))
	report, err = q.Check(ctx)
	require.NoError(t, err)
	assert.Equal(t, 2, report.Ready)
	assert.False(t, report.MayRestart, "a hold would have a bare majority, and lose it")
	require.ErrorContains(t, report.Nodes[0].Refuses, r.says)
	require.NotEmpty(t, report.Nodes[0].Warnings)
	assert.Contains(t, report.Nodes[0].Warnings[0], r.remedy)
	assert.NoError(t, report.Nodes[1].Refuses)
	assert.True(t, e2e.Eventually(func() bool {
		return slices.Equal(events.list(), []string{"node refuses " + first})
	}), "%v", events.list())
	lines := log.Lines("refuses new locks")
	if assert.Len(t, lines, 1) {
		assert.Contains(t, lines[0], first)
		assert.Contains(t, lines[0], r.says)
		assert.Contains(t, lines[0], r.remedy)
	}

	// What a claim meets is noted too, without a Check.
	r.begin(t, c.Node(1))
	m := mutex.New(q, "m", quorate.WithNodeTimeout(100*time.Millisecond))
	err = m.TryLockContext(ctx)
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.ErrorContains(t, err, r.says)
	assert.True(t, e2e.Eventually(func() bool {
		return slices.Contains(events.list(), "node refuses "+c.Node(1).Addr())
	}), "%v", events.list())
	status, body := readiness(q)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, body, r.remedy)
	require.True(t, e2e.EventuallyWithin(time.Minute,
		func() bool { status, body = readiness(idle); return status == http.StatusServiceUnavailable }),
		"a process that has no claim finds out by its probe")
	assert.Contains(t, body, r.says)
	for _, q := range []*quorate.Quorum{idle, e2e.OpenAt(t, c.URLs())} { // one connects only now
		_, err = q.Check(ctx)
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		assert.ErrorContains(t, err, r.says)
		assert.NotContains(t, err.Error(), "text is withheld")
	}

	for i := range 2 {
		r.end(t, c.Node(i))
	}
	require.True(t, e2e.EventuallyWithin(time.Minute, func() bool {
		return slices.Contains(events.list(), "node accepts "+first) &&
			slices.Contains(events.list(), "node accepts "+c.Node(1).Addr())
	}), "%v", events.list())
	status, body = readiness(q)
	assert.Equal(t, http.StatusOK, status, body)
	report, err = q.Check(ctx)
	require.NoError(t, err)
	assert.True(t, report.MayRestart, "%+v", report.Nodes)
	require.NoError(t, m.LockContext(ctx))
	m.Unlock()
	e2e.Clean(t, c)
}

// A server that is started anew while its disk is full refuses the marker with
// which a connection begins. Check gives the server's own words.
func TestRestartedServerWithAFullDisk(t *testing.T) {
	t.Parallel()
	const words = "it's currently unable to persist to disk"
	c := redistest.Start(t, 3, redistest.WithArgs("--save", "3600 1"))
	first := e2e.Open(t, c)
	require.NoError(t, mutex.New(first, "m").Do(deadline(t), func(context.Context) error { return nil }))
	require.NoError(t, first.Close())
	require.NoError(t, c.Node(0).Kill())
	require.NoError(t, c.Node(0).Restart())
	waysToRefuse["a full disk"].begin(t, c.Node(0))
	q := e2e.OpenAt(t, c.URLs())
	require.NoError(t, mutex.New(q, "m").Do(deadline(t), func(context.Context) error { return nil }),
		"two nodes suffice")
	require.EventuallyWithT(t, func(t *assert.CollectT) { // a busy machine may be too slow at first
		report, err := q.Check(context.Background())
		require.NoError(t, err)
		assert.Equal(t, 2, report.Ready)
		assert.ErrorContains(t, report.Nodes[0].Err, words)
	}, e2e.Patience, 10*time.Millisecond)
}

// A blank server whose disk is full cannot record its set. A call that waits for
// it, and Check, give the server's own words with a remedy, and do not say that
// the server records its set on its own.
func TestBlankServerWithAFullDisk(t *testing.T) {
	t.Parallel()
	r := waysToRefuse["a full disk"]
	c := redistest.Start(t, 1)
	r.begin(t, c.Node(0))
	q := e2e.OpenAt(t, c.URLs())
	says := func(t *assert.CollectT) {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_, check := q.Check(context.Background())
		for _, err := range []error{mutex.New(q, "m").LockContext(ctx), check} {
			require.ErrorIs(t, err, quorate.ErrNoQuorum)
			assert.ErrorContains(t, err, r.says)
			assert.ErrorContains(t, err, r.remedy)
			assert.NotContains(t, err.Error(), "on their own")
		}
	}
	require.EventuallyWithT(t, says, e2e.Patience, 10*time.Millisecond)
	r.end(t, c.Node(0))
	require.True(t, e2e.Eventually(func() bool {
		_, err := q.Check(context.Background())
		return err == nil || !strings.Contains(err.Error(), r.says)
	}))
}
