package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/operator"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// The command replaces a node that is dead while a lock is held, and goes on
// with the old list. It says what it waits for, and at the end which nodes the
// set has.
func TestMembersChange(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	timing := e2e.Guarded(4*time.Second, 9*time.Second) // a machine may stand still for two seconds
	old := []string{"--nodes", strings.Join(c.URLs()[:3], ",")}
	q := e2e.OpenAt(t, c.URLs()[:3], timing)
	change := func(args ...string) (int, string, string) {
		return call(append(append([]string{"members"}, args...), old...)...)
	}
	status, _, errs := change("add", c.Node(3).Addr())
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "quorate bootstrap")

	status, _, errs = call("bootstrap", "--new", "--guard", "9s", "--skew", "10ms", "--nodes",
		strings.Join(c.URLs()[:3], ","))
	require.Equal(t, 0, status, errs)
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(within(t)))
	held := m.Lease().Context()

	require.NoError(t, c.Node(2).Kill())
	status, _, errs = change("replace", c.Node(1).Addr()+","+c.Node(2).Addr(), c.Node(3).URL())
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "nothing was changed: if several clients contend", "two become one")
	status, out, errs := change("replace", c.Node(2).Addr(), c.Node(3).URL())
	require.Equal(t, 0, status, errs)
	assert.Contains(t, out,
		"The set is now: "+strings.Join([]string{c.Node(0).Addr(), c.Node(1).Addr(), c.Node(3).Addr()}, " ")+"\n")
	assert.Contains(t, errs, "epoch 2: the old set decides while the next one is prepared; waiting for ")
	assert.Contains(t, errs, "epoch 3: both sets decide, a majority of each; waiting for ")
	assert.Contains(t, out, "Give all clients the new list.\nThen stop the removed servers: "+
		c.Node(2).Addr()+"\n")
	require.NoError(t, context.Cause(held))

	status, _, errs = change("replace", c.Node(2).Addr(), c.Node(4).URL())
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, c.Node(2).Addr()+" is not a node of the set")
	assert.NotContains(t, errs, "made before")
	status, _, errs = change("replace", c.Node(2).Addr(), c.Node(3).URL()) // as after a crash near the end
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "if this change was made before, there is nothing left to do but to keep "+
		c.Node(2).Addr()+" running for 4.5s more")
	m.Unlock()
}

// A change that cannot begin says at once what it waits for. One with a list of
// which most nodes do not belong to the set names the remedy, and so does check.
func TestMembersChangeThatWaits(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	urls, addrs := c.URLs(), c.Addrs()
	require.NoError(t, e2e.Declare(urls[:1]))
	const add = "to add these nodes, run quorate members add with the set's list as --nodes"
	lacks := "is of the set " + addrs[0] + ", which does not include " + addrs[1] + " " + addrs[2]
	says(t, exitBroken, urls, []string{"check"}, lacks, add)
	p := start(t, "members", "add", urls[1], urls[2], "--nodes", strings.Join(urls, ","))
	assert.True(t, e2e.Eventually(func() bool {
		return strings.Contains(p.err.String(), "waiting (nodes ") && strings.Contains(p.err.String(), add)
	}), &p.err)
	p.signal(os.Interrupt)
	assert.Equal(t, 1, p.status())

	dead := start(t, "members", "add", urls[1], "--nodes", urls[0]+",127.0.0.1:1,127.0.0.1:2")
	assert.True(t, e2e.Eventually(func() bool {
		return strings.Contains(dead.err.String(), "connection refused")
	}), &dead.err)
	dead.signal(os.Interrupt)
	assert.Equal(t, 1, dead.status())
}

// A change has the time that it needs, however long the guard time is.
func TestMembersChangeHasEnoughTime(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 2)
	for i, guard := range []time.Duration{9 * time.Second, 10 * time.Minute} {
		q := e2e.OpenAt(t, c.URLs()[i:i+1], e2e.Guarded(4*time.Second, guard))
		require.NoError(t, q.Bootstrap(within(t)))
		assert.Equal(t, max(10*time.Minute, 5*guard), enough(within(t), q, operator.Exchange{}))
		longer := operator.Exchange{Shared: &nodeset.Shared{Guard: time.Hour}}
		assert.Equal(t, 5*time.Hour, enough(within(t), q, longer))
	}
}

// The list of members shows how far an exchange is, and one that is interrupted
// is given up while a lock is held. New nodes learn for a guard time: with one
// of ten minutes they still do when the interrupt comes, however slow the
// machine is.
func TestMembersInterrupted(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	old := []string{"--nodes", strings.Join(c.URLs()[:3], ",")}
	status, _, errs := call(append([]string{"bootstrap", "--new", "--guard", "10m"}, old...)...)
	require.Equal(t, 0, status, errs)
	m := mutex.New(e2e.OpenAt(t, c.URLs()[:3], e2e.Guarded(2*time.Second, 10*time.Minute)), "m")
	require.NoError(t, m.LockContext(within(t)))
	held := m.Lease().Context()

	started := start(t, append([]string{"members", "add", c.Node(3).URL(), c.Node(4).URL()}, old...)...)
	var out string
	enters := e2e.Eventually(func() bool {
		_, out, _ = call(append([]string{"members", "list"}, old...)...)
		return strings.Contains(out, c.Node(4).Addr()+"  member 4, joining")
	})
	require.True(t, enters, out)
	assert.Contains(t, out, c.Node(0).Addr()+"  member 0, staying")
	assert.Contains(t, out,
		"The set is being changed (epoch 2): the old set decides while the next one is prepared\n")
	assert.Contains(t, out, "Note: the set is being changed")
	started.signal(os.Interrupt)
	assert.Equal(t, 1, started.status())
	assert.Contains(t, started.err.String(), "the set is as it was before")
	require.NoError(t, context.Cause(held))
	m.Unlock()
	status, out, _ = call(append([]string{"members", "list"}, old...)...)
	assert.Equal(t, 0, status, out)
}

// An exchange whose command was killed stays half-way, the list of members says
// so, and undo gives it up.
func TestMembersUndo(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	nodes := []string{"--nodes", strings.Join(c.URLs()[:3], ",")} // a guard time of 20 s
	status, _, errs := call(append([]string{"bootstrap", "--new"}, nodes...)...)
	require.Equal(t, 0, status, errs)
	set := strings.Join(c.Addrs()[:3], " ")
	p := start(t, append([]string{"members", "replace", c.Node(2).URL(), c.Node(3).URL()}, nodes...)...)
	require.True(t, e2e.Eventually(func() bool {
		return strings.Contains(p.err.String(), "the next one is prepared; waiting for ")
	}), &p.err)
	require.NoError(t, p.cmd.Process.Kill())
	<-p.ended
	var out string
	said := e2e.EventuallyWithin(time.Minute, func() bool { // the lease of the one that was killed has ended
		_, out, _ = call(append([]string{"members", "list"}, nodes...)...)
		return strings.Contains(out, "or \"quorate members undo\"")
	})
	require.True(t, said, out)
	status, out, errs = call(append([]string{"members", "undo"}, nodes...)...)
	require.Equal(t, 0, status, errs)
	assert.Contains(t, out, "The set is now: "+set+"\n")
	status, out, errs = call(append([]string{"members", "undo"}, nodes...)...)
	assert.Equal(t, 0, status, "%s%s", out, errs)
}

// A node gets another address, and the set other settings. What would end holds
// wants the operator's word.
func TestMembersMoveAndSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	nodes := []string{"--nodes", strings.Join(c.URLs(), ",")}
	members := func(args ...string) (int, string, string) {
		return call(append(append([]string{"members"}, args...), nodes...)...)
	}
	status, _, errs := call(append([]string{"bootstrap", "--new", "--guard", "3s", "--skew", "10ms",
		"--retention", "10m"}, nodes...)...)
	require.Equal(t, 0, status, errs)
	status, out, _ := call(append([]string{"bootstrap", "--new", "--guard", "9s"}, nodes...)...)
	require.Equal(t, 0, status)
	assert.Contains(t, out, "Already recorded; nothing changed")

	alias := "localhost:" + c.Node(2).Addr()[len("127.0.0.1:"):]
	status, _, errs = members("move", c.Node(2).Addr(), c.Node(1).Addr())
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "does not have the data of")
	status, out, errs = members("move", c.Node(2).Addr(), alias)
	require.Equal(t, 0, status, errs)
	assert.Contains(t, out,
		"The set is now: "+strings.Join([]string{c.Node(0).Addr(), c.Node(1).Addr(), alias}, " "))

	status, _, errs = members("move", "--keep", alias, c.Node(2).Addr())
	require.Equal(t, 0, status, errs)
	assert.NotContains(t, errs, "waiting for the clients to follow")
	status, out, _ = members("list")
	assert.Equal(t, 0, status, out)
	assert.Contains(t, out, alias+" can also be reached at "+c.Node(2).Addr()+"\n")

	status, _, errs = members("set", "--guard", "1s")
	assert.Equal(t, 1, status)
	assert.Contains(t, errs,
		"nothing was changed: clients with a TTL above 490ms (up to 1.49s is allowed now) would lose their holds")
	status, _, errs = members("set", "--guard", "1ms")
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "no TTL is short enough")
	mine := file(t, "quorate.yaml", "guard: 9s\n") // of this process, and not to be the set's
	for _, args := range [][]string{{"set", "--guard", "1s", "--yes"},
		{"set", "--skew", "20ms", "--guard", "3s"}, {"set", "--skew", "15ms", "--config", mine}} {
		status, _, errs = members(args...)
		require.Equal(t, 0, status, errs)
	}
	require.True(t, e2e.Eventually(func() bool {
		_, out, _ = members("list")
		return strings.Contains(out, "guard time 3s, retention 10m0s, skew 15ms, longest TTL 1.485s")
	}), "%s", &out)
}

// What would end holds wants the operator's word also where the nodes answer
// long after the command has begun.
func TestMembersChangeOfLateNodes(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]func(c *redistest.Cluster) []string{
		"remove": func(c *redistest.Cluster) []string { return []string{"remove", c.Node(2).Addr()} },
		"set":    func(*redistest.Cluster) []string { return []string{"set", "--guard", "1s"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := redistest.Start(t, 3)
			nodes := []string{"--nodes", strings.Join(c.URLs(), ",")}
			status, _, errs := call(append([]string{"bootstrap", "--new", "--guard", "3s", "--skew", "10ms",
				"--retention", "10m"}, nodes...)...)
			require.Equal(t, 0, status, errs)
			require.NoError(t, c.Node(0).Stop())
			require.NoError(t, c.Node(1).Stop())
			p := start(t, append(append([]string{"members"}, args(c)...), nodes...)...)
			time.Sleep(6 * time.Second) // more than ten node timeouts
			require.NoError(t, c.Node(0).Cont())
			require.NoError(t, c.Node(1).Cont())
			assert.Equal(t, 1, p.status())
			assert.Contains(t, p.err.String(), "nothing was changed: ")
			assert.NotContains(t, p.err.String(), "panic")
			_, out, _ := call(append([]string{"members", "list"}, nodes...)...)
			assert.Contains(t, out, strings.Join(c.Addrs(), " ")+"\n")
			assert.Contains(t, out, "guard time 3s")
		})
	}
}

// What makes no sense is refused as the command line is read.
func TestMembersChangeUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"add"}, {"remove"}, {"replace", "a:1"}, {"undo", "a:1"}, {"move", "a:1"},
		{"move", "a:1", "b:1", "c:1"}, {"set"}, {"set", "--guard", "-1s"}, {"add", "a:1", "--timeout", "0s"}} {
		status, _, errs := call(append([]string{"members", "--nodes", "127.0.0.1:1"}, args...)...)
		assert.Equal(t, cli.ExitUsage, status, errs)
	}
}
