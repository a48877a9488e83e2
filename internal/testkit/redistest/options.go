package redistest

import "errors"

// Binary is the program that is started.
const Binary = "redis-server"

// ErrNotInstalled says that redis-server is not on the PATH.
var ErrNotInstalled = errors.New("redis-server is not on the PATH: install it with `apt-get install " +
	"redis-server` " +
	"(Debian, Ubuntu), `dnf install redis` (Fedora) or `brew install redis` (macOS)")

// ErrClosed is returned by what needs a cluster that is still open.
var ErrClosed = errors.New("redistest: cluster is closed")

// An Option changes how each server of a cluster is started.
type Option func(*config)

type config struct {
	password string
	args     []string
	ownClock bool
	ownDisk  bool
	bus      bool
	under    []string // the command that runs the server; empty: none
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

// WithClock gives each server a wall clock of its own, to be changed with
// [Server.SetClock]. It begins as the machine's. It needs Linux and a C
// compiler; where that is missing, [Run] returns [ErrNoCompiler].
func WithClock() Option {
	return func(c *config) { c.ownClock = true }
}

// WithDisk gives each server a disk of its own, which can be made slow with
// [Server.SetDisk] and lose its power with [Server.CutPower]. It needs Linux
// and a C compiler; where that is missing, [Run] returns [ErrNoCompiler].
func WithDisk() Option {
	return func(c *config) { c.ownDisk = true }
}

// Under has another program run each server, as in
// Under("valgrind", "--tool=callgrind"). The program gets the server's command
// line as its last arguments. It must become the server's process, not start
// one.
func Under(command ...string) Option {
	return func(c *config) { c.under = command }
}
