package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// copyData gives a server the data of another one, and no more.
func copyData(t *testing.T, from, to *redistest.Server) {
	t.Helper()
	require.NoError(t, to.Client().FlushAll(t.Context()).Err())
	for _, key := range from.Client().Keys(t.Context(), "*").Val() {
		require.NoError(t, to.Client().Restore(t.Context(), key, 0, from.Client().Dump(t.Context(), key).Val()).Err())
	}
}

// says runs a command with a list until the nodes have answered in time and it
// says all texts. It must end with the given status.
func says(t *testing.T, status int, list []string, args []string, texts ...string) {
	t.Helper()
	list = []string{"--nodes", strings.Join(list, ",")}
	if args[0] == "lock" {
		list = append(list, "--", "true")
	}
	got, said := 0, ""
	assert.True(t, e2e.Eventually(func() bool {
		var out, errs string
		got, out, errs = call(append(args[:len(args):len(args)], list...)...)
		said = out + errs
		for _, text := range texts {
			if !strings.Contains(said, text) {
				return false
			}
		}
		return got == status
	}), "%q with %q ends with %d: %s", args, list, got, said)
}

// Each command refuses a list that is not that of the set, says which node is
// odd and which nodes the set has.
func TestListOfAnotherSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	urls, addrs := c.URLs(), c.Addrs()
	require.NoError(t, e2e.Declare(urls[:3]))
	require.NoError(t, e2e.DeclareUnrecorded(urls[3:]))
	set := "the set " + strings.Join(addrs[:3], " ")
	const remedy = "give every client the list of the set"
	odd, long := []string{urls[0], urls[1], urls[3]}, urls
	says(t, exitUsage, odd, []string{"lock", "x"}, set, addrs[3]+" is not one of them", remedy)
	says(t, 1, odd, []string{"bootstrap"}, set, addrs[3]+" is not one of them", remedy)
	says(t, exitDegraded, odd, []string{"members", "list"}, set, addrs[3]+" is not one of them", remedy)
	says(t, exitUsage, long, []string{"lock", "x"}, "the list of this client, "+strings.Join(addrs, " "), set, remedy)
	says(t, 1, long, []string{"bootstrap"}, set, remedy)
	says(t, exitBroken, long, []string{"check"}, set, remedy, "nothing can be locked")
	says(t, exitBroken, urls[:1], []string{"check"}, set, remedy, "nothing can be locked")
}

// A list that names a server twice is refused. The message has both names.
func TestListWithAServerTwice(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 2)
	urls, addrs := c.URLs(), c.Addrs()
	require.NoError(t, e2e.DeclareUnrecorded(urls))
	for _, args := range [][]string{{"lock", "x"}, {"check"}, {"bootstrap"}} {
		says(t, exitUsage, []string{urls[0], urls[1], urls[0]}, args, "nodes 1 and 3 are the same server, "+addrs[0], "give each server once")
	}
	alias := "localhost" + strings.TrimPrefix(addrs[0], "127.0.0.1")
	twice := []string{urls[0], urls[1], alias}
	for args, status := range map[string]int{"lock x": exitUsage, "check": exitDegraded, "members list": exitDegraded, "bootstrap": 1} {
		says(t, status, twice, strings.Fields(args), addrs[0], alias, "is the same server as", "give each server once")
	}
}

// A server with a copy of a node's data has no vote. The message names the
// server and the node, and says what to do.
func TestListWithACopy(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	urls, addrs := c.URLs(), c.Addrs()
	require.NoError(t, e2e.Declare(urls[:3]))
	copyData(t, c.Node(0), c.Node(3))
	copied := addrs[3] + ": has a copy of the data of " + addrs[0]
	list := []string{urls[0], urls[1], urls[3]}
	says(t, exitDegraded, list, []string{"check"}, addrs[3]+" refused: has a copy of the data of "+addrs[0], "empty it before it is used")
	says(t, 1, list, []string{"bootstrap"}, copied, "empty it before it is used", "do what the node's error says")
	says(t, exitDegraded, list, []string{"members", "list"}, copied, "empty it before it is used")
}

// A replica is refused, and the message names its master.
func TestListWithAReplica(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	urls, addrs := c.URLs(), c.Addrs()
	require.NoError(t, e2e.DeclareUnrecorded(urls))
	_, port, _ := strings.Cut(addrs[0], ":")
	require.NoError(t, c.Node(2).Client().Do(t.Context(), "REPLICAOF", "127.0.0.1", port).Err())
	says(t, exitDegraded, urls, []string{"check"}, addrs[2], "is a replica, and a node must be a master", "its master is "+addrs[0])
}
