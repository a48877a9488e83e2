// Package e2e shows on real servers, with real processes, that the library
// does what it promises. This file is what its tests and those of the
// primitives share: a Quorum on a test's servers, and the log of a Quorum.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/memory"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// Parallel parses the flags of a test binary. Without -parallel it lets n tests
// run at once: a test has servers of its own and mostly waits, so go test's
// default, the number of processors, leaves those idle. Tests that keep the
// processors busy, or that judge how long something took, are not parallel.
func Parallel(n int) {
	_ = flag.Set("test.parallel", strconv.Itoa(n)) // before Parse, where -parallel replaces it
	flag.Parse()
}

// Main is the TestMain of a package with tests that use this one.
func Main(m *testing.M) {
	flag.Parse()
	Quiet()
	goleak.VerifyTestMain(redistest.Share(m), NeverReturns)
}

// Quiet drops what Quorums log by default, unless the tests are verbose: what a
// test that fails says would be lost in it.
func Quiet() {
	if !testing.Verbose() {
		slog.SetDefault(slog.New(slog.DiscardHandler))
	}
}

// NodesVariable has the nodes of the examples. The command reads it, too.
const NodesVariable = "QUORATE_NODES"

// newNodesVariable has the nodes to which an example moves.
const newNodesVariable = "NEW_NODES"

// MainWithNodes is the TestMain of a package with examples. All of them connect
// to one set of nodes, by $QUORATE_NODES as a reader would. The nodes are in
// the process, so examples need no server.
func MainWithNodes(m *testing.M) {
	flag.Parse()
	Quiet()
	goleak.VerifyTestMain(withNodes{redistest.Share(m)}, NeverReturns)
}

// withNodes runs tests while the nodes of the examples run.
type withNodes struct{ redistest.Tests }

func (m withNodes) Run() int {
	addrs := memory.NewNodes(6).Serve()
	for variable, set := range map[string][]string{NodesVariable: addrs[:3], newNodesVariable: addrs[3:]} {
		if err := Declare(set); err != nil {
			fmt.Fprintln(os.Stderr, "nodes for the examples:", err)
			return 1
		}
		_ = os.Setenv(variable, strings.Join(set, ","))
	}
	return m.Tests.Run()
}

// Declare declares nodes brand-new. They record their set.
func Declare(urls []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	q, err := quorate.Connect(ctx, urls, quorate.WithLogger(nil))
	if err != nil {
		return err
	}
	return errors.Join(insist(ctx, q.Bootstrap), q.Close())
}

// NeverReturns ignores goroutines that wait on a closed Quorum in a call that
// cannot fail.
var NeverReturns = goleak.IgnoreTopFunction("github.com/quorate/quorate/internal/core.Must")

// Patience is how long a test waits for what must happen soon. Nothing depends
// on it but how late a failure is reported.
const Patience = 20 * time.Second

// Timing sets a ttl, and with it the shortest guard time for clocks that agree
// within 10 ms and the longest node timeout.
func Timing(ttl time.Duration) quorate.Option { return Guarded(ttl, 2*ttl+20*time.Millisecond) }

// MinimalFanout has attempts ask a quorum of nodes first, as they do where many
// are at work.
func MinimalFanout() quorate.Option {
	return Setting(func(s *setup.Settings) { s.MinimalFanout = true })
}

// Setting is an option that users do not have.
func Setting(f func(*setup.Settings)) quorate.Option { return core.Option(f).(quorate.Option) }

// Guarded is Timing with a guard time of its own.
func Guarded(ttl, guard time.Duration) quorate.Option {
	return Setting(func(s *setup.Settings) {
		s.TTL, s.Skew, s.Guard = ttl, 10*time.Millisecond, guard
		s.NodeTimeout, s.Retention = min(ttl/4, 2*time.Second), max(guard, 5*time.Minute)
	})
}

// Open returns a Quorum on all servers of c, with a client of its own for each,
// declares the servers ready, and closes it when the test has ended.
func Open(t testing.TB, c *redistest.Cluster, opts ...quorate.Option) *quorate.Quorum {
	t.Helper()
	q := OpenAt(t, c.URLs(), opts...)
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := insist(ctx, q.Bootstrap); err != nil {
		t.Fatal(err)
	}
	joined(q)
	return q
}

// joined waits until each node of q's set is connected, votes and attests.
// Bootstrap waits for a majority only: where one node is late, a claim has
// nothing there, and nothing there hangs.
func joined(q *quorate.Quorum) {
	_ = Eventually(func() bool {
		r, err := q.Check(context.Background())
		return err == nil && r.Ready == len(r.Nodes) &&
			!slices.ContainsFunc(r.Nodes, func(n quorate.NodeReport) bool { return !n.CaughtUp })
	})
}

// insist bootstraps until the nodes answer in time: with the short node
// timeouts of tests a busy machine is too slow.
func insist(ctx context.Context, bootstrap func(context.Context) error) error {
	for {
		if err := bootstrap(ctx); err == nil || ctx.Err() != nil || !errors.Is(err, quorate.ErrNoQuorum) {
			return err
		}
	}
}

// OpenAt is Open for servers at URLs, which may be in any state.
func OpenAt(t testing.TB, urls []string, opts ...quorate.Option) *quorate.Quorum {
	t.Helper()
	all, err := setup.ParseNodes(urls)
	if err != nil {
		t.Fatal(err)
	}
	clients, names := make([]redis.UniversalClient, 0, len(urls)), make([]string, 0, len(urls))
	for i, u := range urls {
		clients, names = append(clients, Client(t, u)), append(names, all[i].Name())
	}
	q, err := quorate.New(clients,
		append([]quorate.Option{quorate.WithLogger(nil), quorate.WithNodeNames(names...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// Client returns a client of a URL that OpenAt takes.
func Client(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	o, err := setup.ParseNodes([]string{url})
	if err == nil {
		err = o[0].Prepare(through)
	}
	if err != nil {
		t.Fatal(err)
	}
	client := o[0].Client()
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Proxies opens a proxy in front of each of the servers at urls for as long as
// a test runs. It returns URLs for [OpenAt], and for Connect with [Through]. A
// client knows the servers by their own addresses, as the set has recorded
// them, and reaches them through the proxies.
func Proxies(t testing.TB, urls []string, f proxy.Fault) (proxies []*proxy.Proxy, via []string) {
	t.Helper()
	proxies, _ = proxy.Start(t, urls, f)
	for i, u := range urls {
		via = append(via, u+"?client_name="+viaProxy+proxies[i].Addr())
	}
	return proxies, via
}

// Through has Connect take the URLs of [Proxies].
func Through() quorate.Option { return Setting(func(s *setup.Settings) { s.Prepare = through }) }

// viaProxy begins a name of a client that says where to dial its address.
const viaProxy = "via-"

func through(o *redis.Options) error {
	if at, is := strings.CutPrefix(o.ClientName, viaProxy); is {
		own := o.Addr
		o.ClientName, o.Dialer = "", func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == own { // other members take the options of this one
				addr = at
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}
	}
	return nil
}

// Eventually waits until cond is so, and reports whether it came to that. It is
// for what no event tells.
func Eventually(cond func() bool) bool { return EventuallyWithin(Patience, cond) }

// EventuallyWithin is Eventually for what takes longer now and then, such as
// the failover of a Sentinel that has stood still for two seconds: it does
// nothing for half a minute then.
func EventuallyWithin(d time.Duration, cond func() bool) bool {
	for began := time.Now(); !cond(); {
		past := time.Since(began)
		if past > d {
			return false
		}
		// A look costs commands, and processors that what is waited for needs:
		// the longer it takes, the less often.
		time.Sleep(min(max(past/16, 2*time.Millisecond), 20*time.Millisecond))
	}
	return true
}

// Receive waits for what must happen soon. It fails the test when that has not
// happened after Patience.
func Receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	return ReceiveWithin(t, Patience, c)
}

// ReceiveWithin is Receive where the time matters. A channel that is closed
// gives the zero value.
func ReceiveWithin[T any](t testing.TB, d time.Duration, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(d):
		t.Fatalf("has not happened within %v", d)
	}
	return v
}

// Log keeps what a Quorum says to its logger, from Info upwards.
type Log struct {
	mu    sync.Mutex
	lines []string
}

// Option makes a Quorum write to l.
func (l *Log) Option() quorate.Option {
	w := writer(func(p []byte) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, strings.TrimSpace(string(p)))
	})
	return quorate.WithLogger(slog.New(slog.NewTextHandler(w, nil)))
}

// Lines are the lines that contain text.
func (l *Log) Lines(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

// Queued is a context that tells when a call has begun to wait with it: a
// goroutine asks a context for its channel when it has taken its place.
type Queued struct {
	context.Context
	once sync.Once
	in   chan struct{}
}

// NewQueued returns a Queued that ends with ctx.
func NewQueued(ctx context.Context) *Queued { return &Queued{Context: ctx, in: make(chan struct{})} }

// Done is the context's.
func (c *Queued) Done() <-chan struct{} {
	c.once.Do(func() { close(c.in) })
	return c.Context.Done()
}

// In is closed when a call waits.
func (c *Queued) In() <-chan struct{} { return c.in }
