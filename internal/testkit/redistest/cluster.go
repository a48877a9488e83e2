package redistest

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"testing"
)

// A Cluster is a number of running servers. Its methods may be called
// concurrently.
type Cluster struct {
	servers []*Server
	once    sync.Once
	err     error
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

// Calls is how often the servers have run a command, all of them together, also
// where a script has called it, by their own account.
func (c *Cluster) Calls(t testing.TB, command string) (n int) {
	t.Helper()
	for i := range c.Len() {
		n += c.Node(i).Calls(t, command)
	}
	return n
}
