package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// copyData gives a server the data of another one, and no more.
func copyData(t *testing.T, from, to *redistest.Server) {
	t.Helper()
	require.NoError(t, to.Client().FlushAll(t.Context()).Err())
	for _, key := range from.Client().Keys(t.Context(), "*").Val() {
		require.NoError(t, to.Client().Restore(t.Context(), key,
			0, from.Client().Dump(t.Context(), key).Val()).Err())
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

// Each command refuses a list that leads to no set, and says which sets its
// nodes are of. A list of which a majority shows the set leads to it.
func TestListOfAnotherSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	urls, addrs := c.URLs(), c.Addrs()
	require.NoError(t, e2e.Declare(urls[:3]))
	set := "the set " + strings.Join(addrs[:3], " ")
	const remedy = "give every client the set's list"
	for _, odd := range [][]string{{urls[0], urls[3], urls[4]}, {urls[0], urls[3]}} {
		says(t, cli.ExitUsage, odd, []string{"lock", "x"}, set,
			"this client's list, "+addrs[0]+" "+addrs[3], remedy)
		says(t, 1, odd, []string{"bootstrap"}, set, remedy)
		says(t, exitBroken, odd, []string{"check"}, set, remedy, "nothing can be locked")
	}
	for _, list := range [][]string{{urls[3], urls[1], urls[0]}, urls, urls[:1]} {
		says(t, 0, list, []string{"lock", "x"})
		says(t, 0, list, []string{"bootstrap"}, "Already recorded; nothing changed")
		says(t, 0, list, []string{"check"}, strings.Join(addrs[:3], " "))
	}
}

// A list that names a server twice is refused, and so is one with two databases.
// The message has both names.
func TestListWithAServerTwice(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 2)
	urls, addrs := c.URLs(), c.Addrs()
	for _, args := range [][]string{{"lock", "x"}, {"check"}, {"bootstrap"}} {
		says(t, cli.ExitUsage, []string{urls[0], urls[1], urls[0]}, args,
			"nodes 1 and 3 are the same server, "+addrs[0], "list each server once")
		says(t, cli.ExitUsage, []string{urls[0], urls[1] + "/1"}, args,
			addrs[0]+") uses database 0, but node 2 ("+addrs[1]+") uses database 1", "the same database number")
	}
	alias := "localhost" + strings.TrimPrefix(addrs[0], "127.0.0.1")
	says(t, 1, []string{urls[0], urls[1], alias}, []string{"bootstrap", "--new"}, addrs[0],
		alias, "is the same server as", "list each server once")
}

// A member's server with the data of another member has no vote. The message
// names both, and says what to do.
func TestNodeWithAnotherOnesData(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	urls, addrs := c.URLs(), c.Addrs()
	require.NoError(t, e2e.Declare(urls))
	copyData(t, c.Node(0), c.Node(2))
	says(t, exitDegraded, urls, []string{"check"}, addrs[2]+" refused: ",
		"has the data of "+addrs[0]+", another member of this set", "quorate members move")
	says(t, exitDegraded, urls, []string{"members", "list"}, addrs[2]+"  no: another member's data")
}

// A replica is refused, and the message names its master.
func TestListWithAReplica(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	urls, addrs := c.URLs(), c.Addrs()
	require.NoError(t, e2e.Declare(urls))
	_, port, _ := strings.Cut(addrs[0], ":")
	require.NoError(t, c.Node(2).Client().Do(t.Context(), "REPLICAOF", "127.0.0.1", port).Err())
	says(t, exitDegraded, urls, []string{"check"}, addrs[2],
		"is a replica, but a node must be a master", "its master is "+addrs[0])
}
