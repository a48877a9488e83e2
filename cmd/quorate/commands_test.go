package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

func call(args ...string) (status int, out, errs string) {
	var o, e output
	status = execute(args, &o, &e)
	return status, o.String(), e.String()
}

// flush has nodes lose all their data.
func flush(t *testing.T, urls ...string) {
	t.Helper()
	for _, u := range urls {
		o, err := redis.ParseURL(u)
		require.NoError(t, err)
		c := redis.NewClient(o)
		require.NoError(t, c.FlushAll(t.Context()).Err())
		require.NoError(t, c.Close())
	}
}

func TestCheckAndBootstrap(t *testing.T) {
	ns := startNodes(t, 3)
	status, out, errs := call("check")
	assert.Equal(t, 0, status, errs)
	assert.Contains(t, out, "3 of 3 nodes are ready, 2 are needed: 1 more may fail.")

	// One node of three lost its data: a majority is left, but no other node
	// may follow it. It is no new set: bootstrap changes nothing.
	flush(t, ns.URLs()[0])
	require.Eventually(t, func() bool {
		status, out, _ = call("check")
		return status == exitDegraded && strings.Contains(out, "votes in ")
	}, 10*time.Second, time.Millisecond, "%s", &out)
	status, _, _ = call("check", "--all")
	assert.Equal(t, 1, status)
	status, out, errs = call("bootstrap")
	assert.Equal(t, 0, status, errs)
	assert.Contains(t, out, "Already recorded; nothing changed")

	ns.Stop(0)
	require.Eventually(t, func() bool {
		status, out, _ = call("check")
		return status == exitDegraded
	}, 10*time.Second, time.Millisecond, "no node may follow: %s", &out)
	require.Eventually(t, func() bool { // on a busy machine another node may be late
		status, out, _ = call("check", "--all")
		return status == exitDegraded
	}, 10*time.Second, time.Millisecond, "one node does not answer: %s", &out)
	assert.Contains(t, out, "no node may fail")
	assert.Contains(t, out, "unreachable: ")
	ns.Stop(1)
	status, out, _ = call("check")
	assert.Equal(t, 2, status)
	assert.Contains(t, out, "nothing can be locked")
}

// The check and the list of members say whether a set is recorded, which, and
// how each node stands to it. A server of the list that is no member has no
// vote, and is named.
func TestMembersList(t *testing.T) {
	c := redistest.Start(t, 4)
	three, odd := strings.Join(c.URLs()[:3], ","),
		strings.Join([]string{c.URLs()[0], c.URLs()[1], c.URLs()[3]}, ",")
	status, out, errs := call("members", "list", "--nodes", three)
	assert.Equal(t, 1, status, errs)
	assert.Contains(t, out, c.Node(0).Addr()+"  no: blank")
	assert.Contains(t, out, "Note: no set is recorded yet")
	assert.Contains(t, out, "quorate bootstrap")

	status, out, errs = call("bootstrap", "--new", "--nodes", three)
	require.Equal(t, 0, status, errs)
	assert.Contains(t, out,
		"The set is recorded with a guard time of 20s: clients with a TTL above 8s are refused.")
	members := strings.Join(c.Addrs()[:3], " ")
	for _, args := range [][]string{{"members", "list", "--nodes", three}, {"check", "--nodes", three},
		{"members", "list", "--nodes", odd}} {
		require.Eventually(t, func() bool { // not all nodes may be connected in time
			status, out, _ = call(args...)
			return status == 0
		}, 20*time.Second, time.Millisecond, "%s", &out)
		assert.Contains(t, out, "recorded ")
		assert.Contains(t, out, ": "+members+"\n")
		assert.Contains(t, out, "guard time 20s, retention 5m0s, skew 2s, longest TTL 8s")
		assert.NotContains(t, out, "Note")
	}
	assert.Contains(t, out, c.Node(2).Addr()+"  member 2")
	assert.NotContains(t, out, c.Node(3).Addr())
}

// While too few nodes show which set they are of, no text names
// Bootstrap: nodes that gave leases may be among those that are down.
func TestTooFewNodesToTellTheSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	nodes := "--nodes=" + strings.Join(c.URLs(), ",")
	status, _, errs := call("bootstrap", "--new", nodes)
	require.Equal(t, 0, status, errs)
	for i := range 2 {
		require.NoError(t, c.Node(i).Kill())
	}
	shows := func(what string, texts ...string) {
		for _, verb := range [][]string{{"check", nodes}, {"members", "list", nodes}} {
			status, out, errs := 0, "", ""
			// The connection may have ended so that the next one judges the node.
			require.True(t, e2e.Eventually(func() bool {
				status, out, errs = call(verb...)
				return !strings.Contains(out, "verify membership")
			}), what)
			assert.NotZero(t, status, what)
			for _, text := range append(texts,
				"Note: too few nodes show which set they are of: start those that are down") {
				assert.Contains(t, out, text, what)
			}
			assert.NotContains(t, out+errs, "no set is recorded yet", what)
		}
	}
	shows("one shows the set", "agree: start those that are down")
	require.NoError(t, c.Node(0).Restart())
	flush(t, c.URLs()[0])
	shows("another has lost its data", "agree: start those that are down", "has lost its data")
	for _, i := range []int{0, 2} {
		require.NoError(t, c.Node(i).Kill())
	}
	shows("all are down", "connection refused")
}

// Without a node of the list nothing is recorded, and the message says what to
// do in words of the command.
func TestBootstrapWithoutANode(t *testing.T) {
	c := redistest.Start(t, 3)
	require.NoError(t, c.Node(1).Kill())
	status, _, errs := call("bootstrap", "--nodes", strings.Join(c.URLs(), ","))
	assert.Equal(t, 1, status)
	assert.Contains(t, errs,
		"the nodes record their set only when all of them answer; start those that are down")
	assert.NotContains(t, errs, "Quorum.")
	_, out, _ := call("members", "list", "--nodes", strings.Join(c.URLs(), ","))
	assert.Contains(t, out, "Note: no set is recorded yet")
}

// The nodes of a recorded set answer long after the command has begun. It does
// not claim that it has declared them brand-new.
func TestBootstrapOfLateNodes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	nodes := "--nodes=" + strings.Join(c.URLs(), ",")
	status, _, errs := call("bootstrap", "--new", nodes)
	require.Equal(t, 0, status, errs)
	var p *proc
	require.True(t, e2e.Eventually(func() bool { // on a busy machine the nodes may be too late
		require.NoError(t, c.Node(0).Stop())
		require.NoError(t, c.Node(1).Stop())
		p = start(t, "bootstrap", nodes)
		time.Sleep(2500 * time.Millisecond) // longer than it asks whether a set is recorded
		require.NoError(t, c.Node(0).Cont())
		require.NoError(t, c.Node(1).Cont())
		return p.status() == 0
	}))
	assert.Equal(t, "Already recorded; nothing changed. The set is "+strings.Join(c.Addrs(), " ")+".\n",
		p.out.String())
}

// The command records nothing. At brand-new nodes it waits in vain, and names no
// remedy that does not help there.
func TestCheckWaitsForNewNodes(t *testing.T) {
	c := redistest.Start(t, 1)
	status, out, errs := call("check", "--nodes", c.URLs()[0], "--wait", "--timeout", "1s")
	assert.Equal(t, 2, status)
	assert.Contains(t, out, "Note: no set is recorded yet")
	assert.Contains(t, errs, "waited for 1s; the note in the report says what to do")
	assert.NotContains(t, errs, "longer --timeout")
}

// The command waits until all nodes vote. It says what it waits for, and for
// how long at most.
func TestCheckWait(t *testing.T) {
	t.Parallel() // it waits for the end of a guard time
	ns := ownNodes(t, 3)
	nodes := "--nodes=" + strings.Join(ns.URLs(), ",")
	flush(t, ns.URLs()[0])
	status, out, errs := 0, "", ""
	// Not all nodes may have answered in time.
	for d := 100 * time.Millisecond; !strings.Contains(errs, "votes in ") && d < 10*time.Second; d *= 2 {
		status, out, errs = call("check", nodes, "--wait", "--timeout", d.String())
	}
	assert.Equal(t, 1, status)
	assert.Contains(t, out,
		"2 of 3 nodes are ready, 2 are needed: no node may fail: with one more down nothing can be locked.")
	assert.Contains(t, errs, "waiting: ")
	assert.Contains(t, errs, "votes in ")
	assert.Contains(t, errs, "not safe to restart a node: waited for ")
	assert.Contains(t, errs, "with a longer --timeout")

	p := start(t, "check", nodes, "--wait")
	require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "votes in ") },
		20*time.Second, 5*time.Millisecond)
	status, _, errs = call("bootstrap", "--new", nodes)
	require.Equal(t, 0, status, errs)
	assert.Equal(t, 0, p.status(), p.err.String())
	assert.Contains(t, p.out.String(), "3 of 3 nodes are ready, 2 are needed: 1 more may fail.")

	flush(t, ns.URLs()[1])
	p = start(t, "check", nodes, "--wait")
	require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "votes in ") },
		20*time.Second, 5*time.Millisecond)
	p.signal(os.Interrupt)
	assert.Equal(t, 1, p.status())

	for _, wrong := range [][]string{{"--timeout", "1s"}, {"--wait", "--timeout", "0s"}} {
		status, _, _ = call(append([]string{"check"}, wrong...)...)
		assert.Equal(t, cli.ExitUsage, status)
	}
}

// The command has blank nodes record nothing. It waits for the client that
// does, which need not ask for a lock.
func TestCheckWaitOnBlankNodes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	nodes := "--nodes=" + strings.Join(c.URLs(), ",")
	status, out, _ := call("check", nodes)
	assert.Equal(t, exitBroken, status)
	assert.Contains(t, out, "has recorded no set")
	for _, n := range []int{0, 1, 2} {
		assert.Zero(t, c.Node(n).Client().DBSize(t.Context()).Val(), "nothing is recorded")
	}
	p := start(t, "check", nodes, "--wait")
	q, err := quorate.Connect(t.Context(), c.URLs(), quorate.WithTTL(400*time.Millisecond), quorate.WithSkew(0),
		quorate.WithGuard(time.Second), quorate.WithNodeTimeout(100*time.Millisecond), quorate.WithLogger(nil))
	require.NoError(t, err)
	defer q.Close()
	assert.Equal(t, 0, p.status(), p.err.String())
}

func TestNodes(t *testing.T) {
	p := start(t, "nodes", "-n", "3")
	p.says("\n")
	line, ok := strings.CutPrefix(strings.TrimSpace(p.out.String()), "export QUORATE_NODES=")
	require.True(t, ok, p.out.String())
	assert.Len(t, strings.Split(line, ","), 3)
	status, _, errs := call("check", "--nodes", line)
	assert.Equal(t, 0, status, errs)
	p.signal(os.Interrupt)
	assert.Equal(t, 0, p.status())
}

// SIGTERM ends the nodes while a client is connected and a command waits there.
func TestNodesEndAtSIGTERM(t *testing.T) {
	p := start(t, "nodes", "-n", "1")
	p.says("\n")
	url := strings.TrimPrefix(strings.TrimSpace(p.out.String()), "export QUORATE_NODES=")
	o, err := redis.ParseURL(url)
	require.NoError(t, err)
	c := redis.NewClient(o)
	defer func() { _ = c.Close() }()
	waits := make(chan error, 1)
	go func() { waits <- c.BLPop(t.Context(), 0, "nothing").Err() }()
	require.Eventually(t, func() bool { return c.Ping(t.Context()).Err() == nil }, time.Minute, time.Millisecond)
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.status())
	assert.Error(t, <-waits)
}

// A stranger's first minute, in short.
func TestDemo(t *testing.T) {
	t.Parallel()
	p := start(t, "demo", "--seconds", "3", "--ttl", "800ms")
	assert.Equal(t, 0, p.status(), "%s\n%s", &p.out, &p.err)
	out := p.out.String()
	for _, want := range []string{
		"is killed (kill -9) while it holds the lock", "node 2 is killed.",
		"no update was lost", "never by two workers at once",
		"higher than the previous one", "The lock kept working",
		"worker 1", "█ holds the lock", "median of",
	} {
		assert.Contains(t, out, want)
	}
	assert.NotContains(t, out, "\x1b", "no colours and no cursor tricks where there is no terminal")
	assert.Empty(t, p.err.String())
	if t.Failed() {
		t.Log(out)
	}
}

func TestDemoSmall(t *testing.T) {
	t.Parallel()
	p := startWith(t, []string{"LC_ALL=C"}, "demo", "--seconds", "2", "--ttl", "500ms",
		"--nodes", "1", "--workers", "2")
	assert.Equal(t, 0, p.status(), "%s\n%s", &p.out, &p.err)
	assert.NotContains(t, p.out.String(), "node 2")
	for _, r := range p.out.String() {
		assert.Less(t, r, rune(128), "a C locale gets plain ASCII")
	}
}

// The stale write goes through without a fence, and is rejected with one.
func TestDemoPause(t *testing.T) {
	t.Parallel()
	p := start(t, "demo", "--pause")
	assert.Equal(t, 0, p.status(), "%s\n%s", &p.out, &p.err)
	out := p.out.String()
	for _, want := range []string{
		"worker 1 gets the lock, token …", "is stopped (SIGSTOP)",
		"take the lock back after 1.5s", "worker 2 gets the lock",
		"worker 1 continues (SIGCONT)", "without a fence  150  the deposit of worker 2 is lost",
		"with a fence     130  rejected: token …",
		"✓ The fence rejected the stale write: the balance is 130",
		"worker 1 checks its context: the lock is lost",
	} {
		assert.Contains(t, out, want)
	}
	assert.Empty(t, p.err.String())
	status, _, errs := call("demo", "--pause", "--workers", "3")
	assert.Equal(t, cli.ExitUsage, status)
	assert.Contains(t, errs, "--pause cannot be combined with --workers")
}
