// Package redistest starts real redis-server processes for tests, examples,
// benchmarks and commands.
//
// A [Cluster] is N independent masters on loopback, as a quorum wants them. It
// is not Redis Cluster: the servers know nothing of each other. Each has a port
// and a directory of its own, and can be killed, frozen and started again on
// its own.
//
// # How servers end
//
// [Cluster.Close] kills every server, also a frozen one, and removes its files.
// A process that is killed or panics never gets to Close; on Linux the kernel
// then kills its servers (see testkit/process). Elsewhere they are left
// running: there is no such service to ask for.
//
// # How ports are chosen
//
// The obvious way, to listen on port 0 and hand the port on, is wrong twice
// here. The port is free again before the server has it, so two test binaries
// can be given the same one. And it comes from the range that outgoing
// connections use, so while a server is down a client's connection may take its
// port; a client that redials a dead server can even connect to itself. Ports
// are therefore taken from below that range, and each is reserved for the
// cluster's life by a UDP socket of the same number: every user of this package
// tries for that first, and it cannot outlive its owner.
package redistest

import (
	"errors"
	"os"
	"runtime"
	"testing"
)

// RequireEnv names the variable that, like CI, makes a missing redis-server
// fail a test instead of skipping it, and on Linux a missing C compiler.
const RequireEnv = "QUORATE_REQUIRE_REDIS"

// Start runs n servers for a test, and closes them when the test has ended.
// Where something is not installed the test is skipped or fails: see
// [SkipIfMissing].
func Start(t testing.TB, n int, opts ...Option) *Cluster {
	t.Helper()
	var idle []*Server
	if len(opts) == 0 {
		idle = take(n)
	}
	c, err := run(idle, n, opts)
	SkipIfMissing(t, err)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.end((*Server).giveBack); err != nil {
			t.Error(err)
		}
	})
	return c
}

// SkipIfMissing skips a test for which [Run] has not found redis-server, or
// what one of its options needs, unless CI, or [RequireEnv], says that it must
// be there.
func SkipIfMissing(t testing.TB, err error) {
	t.Helper()
	switch required := os.Getenv(RequireEnv) != ""; {
	case os.Getenv("CI") != "":
	case errors.Is(err, ErrNotInstalled) && !required,
		errors.Is(err, ErrNoCompiler) && (!required || runtime.GOOS != "linux"):
		t.Skip(err)
	}
}
