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
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

// Binary is the program that is started.
const Binary = "redis-server"

// ErrNotInstalled says that redis-server is not on the PATH.
var ErrNotInstalled = errors.New("redis-server is not on the PATH: install it with `apt-get install redis-server` " +
	"(Debian, Ubuntu), `dnf install redis` (Fedora) or `brew install redis` (macOS)")

// ErrClosed is returned by what needs a cluster that is still open.
var ErrClosed = errors.New("redistest: cluster is closed")

// RequireEnv names the variable that, like CI, makes a missing redis-server
// fail a test instead of skipping it, and on Linux a missing C compiler.
const RequireEnv = "QUORATE_REQUIRE_REDIS"

// An Option changes how each server of a cluster is started.
type Option func(*config)

type config struct {
	password string
	args     []string
	clock    bool
	disk     bool
	bus      bool
}

// WithAOF makes the servers keep an append-only file, so that [Server.Restart]
// brings back what was written. The policy is Redis's appendfsync: "always",
// "everysec" or "no".
func WithAOF(policy string) Option {
	return WithArgs("--appendonly", "yes", "--appendfsync", policy)
}

// WithPassword makes the servers demand a password. [Server.URL] and
// [Server.Client] carry it.
func WithPassword(password string) Option {
	return func(c *config) { c.password = password }
}

// WithArgs adds arguments to redis-server's command line, as in
// WithArgs("--maxmemory", "4mb"). A later setting overrides an earlier one.
func WithArgs(args ...string) Option {
	return func(c *config) { c.args = append(c.args, args...) }
}

// A Cluster is a number of running servers. Its methods may be called
// concurrently.
type Cluster struct {
	servers []*Server
	once    sync.Once
	err     error
}

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

// Run runs n servers until [Cluster.Close]. It returns when all of them answer,
// or none is left.
func Run(n int, opts ...Option) (*Cluster, error) { return run(nil, n, opts) }

// run runs so many servers that there are n with those that run.
func run(running []*Server, n int, opts []Option) (*Cluster, error) {
	if n < 1 {
		return nil, fmt.Errorf("redistest: a cluster needs at least one server, not %d", n)
	}
	binary, err := exec.LookPath(Binary)
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", ErrNotInstalled)
	}
	var cfg config
	for _, opt := range opts {
		opt(&cfg)
	}

	more := &Cluster{}
	for range n - len(running) {
		more.servers = append(more.servers, &Server{binary: binary, cfg: cfg, own: len(opts) > 0})
	}
	err = more.each((*Server).open)
	c := &Cluster{servers: append(running, more.servers...)}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close kills the servers, closes their clients and removes their files.
// Closing again does nothing.
func (c *Cluster) Close() error { return c.end((*Server).close) }

// end ends the cluster by f, unless it has ended.
func (c *Cluster) end(f func(*Server) error) error {
	c.once.Do(func() { c.err = c.each(f) })
	return c.err
}

// each calls f for all servers at once and waits for all.
func (c *Cluster) each(f func(*Server) error) error {
	errs := make([]error, len(c.servers))
	var wg sync.WaitGroup
	for i, s := range c.servers {
		wg.Go(func() { errs[i] = f(s) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Len is the number of servers, running or not.
func (c *Cluster) Len() int { return len(c.servers) }

// Node is the server with index i, from 0.
func (c *Cluster) Node(i int) *Server { return c.servers[i] }

// Addrs are the servers' addresses, as host:port.
func (c *Cluster) Addrs() []string {
	return c.all((*Server).Addr)
}

// URLs are the servers' redis:// URLs, with the password if there is one.
func (c *Cluster) URLs() []string {
	return c.all((*Server).URL)
}

func (c *Cluster) all(f func(*Server) string) (all []string) {
	for _, s := range c.servers {
		all = append(all, f(s))
	}
	return all
}

// Ports lie above the well-known ones and below what Linux, macOS and Windows
// give to outgoing connections.
const (
	lowestPort  = 10_000
	highestPort = 31_999
)

// reservePort finds a port that no program listens on and that no other user of
// this package has. The port is ours until the returned socket is closed.
func reservePort() (int, net.PacketConn, error) {
	var last error
	for range 500 {
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		// First, resolve competition with other users of this package.
		reservation, err := net.ListenPacket("udp4", addr)
		if err != nil {
			last = err
			continue
		}
		// Then see that no stranger listens there.
		probe, err := net.Listen("tcp4", addr)
		if err != nil {
			last = err
			_ = reservation.Close()
			continue
		}
		_ = probe.Close()
		return port, reservation, nil
	}
	return 0, nil, fmt.Errorf("redistest: no free port on 127.0.0.1: %w", last)
}

// Calls is how often the servers have run a command, all of them together, also
// where a script has called it, by their own account.
func (c *Cluster) Calls(t testing.TB, command string) (n int) {
	t.Helper()
	for i := range c.Len() {
		n += c.Node(i).Calls(t, command)
	}
	return n
}
