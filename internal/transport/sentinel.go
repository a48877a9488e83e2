package transport

// Nodes that are Sentinel sets: how the Sentinels are asked for the master, and
// which answer counts.
// Invariant: the only addresses dialled are the Sentinels of the list and an
// address that a majority of them has named. Otherwise a malicious Sentinel
// would get the master's password.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// SentinelPrefix begins the address of each node that is a Sentinel set.
const SentinelPrefix = "sentinel:"

// FailoverAddr is the address in the options of each redis.NewFailoverClient.
const FailoverAddr = "FailoverClient"

// ErrNoMaster is what the Sentinels say about a wrong name. Asking again will
// not help.
var ErrNoMaster = errors.New("the Sentinels know no master of that name: check master_name")

// SentinelClient is the client of a Sentinel set. It replaces
// redis.NewFailoverClient, which dials any address that the first Sentinel to
// answer names.
type SentinelClient struct {
	*redis.Client
	set *sentinels
}

// NewSentinelClient returns a client of the master that a majority of the
// Sentinels names. It does not connect yet. A Sentinel that is listed twice
// counts once.
func NewSentinelClient(o *redis.FailoverOptions) *SentinelClient {
	s := &sentinels{
		master: o.MasterName, addrs: each(o.SentinelAddrs), tls: o.TLSConfig, dialer: o.Dialer,
		login: &redis.Options{Username: o.SentinelUsername, Password: o.SentinelPassword,
			ClientName: o.ClientName},
	}
	for _, addr := range o.SentinelAddrs {
		if host, _, err := net.SplitHostPort(addr); err == nil {
			s.hosts = append(s.hosts, host)
		}
	}
	return &SentinelClient{set: s, Client: redis.NewClient(&redis.Options{
		Addr: SentinelName(o), Network: "tcp",
		Dialer: s.dialMaster, OnConnect: o.OnConnect, ClientName: o.ClientName, Protocol: o.Protocol,
		Username: o.Username, Password: o.Password, CredentialsProvider: o.CredentialsProvider,
		CredentialsProviderContext:   o.CredentialsProviderContext,
		StreamingCredentialsProvider: o.StreamingCredentialsProvider,
		DB:                           o.DB, TLSConfig: o.TLSConfig, MaxRetries: o.MaxRetries,
		DialerRetries: o.DialerRetries,
		DialTimeout:   o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		// As in go-redis's own client of a Sentinel set.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})}
}

// Login returns the user and the password for the Sentinels themselves.
func (c *SentinelClient) Login() (user, password string) {
	return c.set.login.Username, c.set.login.Password
}

// SentinelName returns the address under which a Sentinel set is recorded as a
// node: the name of its master and its Sentinels, in order.
func SentinelName(o *redis.FailoverOptions) string {
	return SentinelPrefix + o.MasterName + "@" + strings.Join(each(o.SentinelAddrs), ",")
}

// each returns the addresses of a list, sorted and without duplicates.
func each(addrs []string) []string { return slices.Compact(slices.Sorted(slices.Values(addrs))) }

// sentinels has what is needed to reach the Sentinels of one set, and its
// servers. It does not change.
type sentinels struct {
	master string   // its name
	addrs  []string // of the Sentinels, without duplicates
	hosts  []string // of the Sentinels, in the order of the list
	login  *redis.Options
	tls    *tls.Config // nil: none
	dialer func(ctx context.Context, network, addr string) (net.Conn, error)
}

// dial connects to a Sentinel, or to the master that a majority has named.
func (s *sentinels) dial(ctx context.Context, addr string) (net.Conn, error) {
	return within(ctx, func() (net.Conn, error) {
		switch {
		case s.dialer != nil:
			return s.dialer(ctx, "tcp", addr)
		case s.tls != nil:
			return (&tls.Dialer{Config: s.tlsFor(addr)}).DialContext(ctx, "tcp", addr)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}, discard)
}

// tlsFor determines which name a server's certificate must have: the one in the
// options. If that is missing or is the host of a Sentinel, as in a URL, the
// dialled host will do, but only if it is in the list: a Sentinel must not be
// able to choose the name.
func (s *sentinels) tlsFor(addr string) *tls.Config {
	c := s.tls.Clone()
	host, _, _ := net.SplitHostPort(addr)
	switch {
	case c.ServerName != "" && !slices.Contains(s.hosts, c.ServerName):
	case slices.Contains(s.hosts, host):
		c.ServerName = host
	case c.ServerName == "" && len(s.hosts) > 0:
		c.ServerName = s.hosts[0]
	}
	return c
}

// dialMaster is the Dialer of the client, for code that uses the client
// directly.
func (s *sentinels) dialMaster(ctx context.Context, _, _ string) (net.Conn, error) {
	a := newAsker(s)
	defer a.close()
	addr, err := a.masterAddr(ctx, askTimeout)
	if err != nil {
		return nil, err
	}
	return s.dial(ctx, addr)
}

// askTimeout limits a question if nothing else does.
const askTimeout = 5 * time.Second

// asker asks all Sentinels of a set concurrently, and keeps a connection to
// each of them. It is safe for concurrent use. mu guards the fields below it.
type asker struct {
	*sentinels
	ctx    context.Context // ends when close is called
	cancel context.CancelFunc
	all    sync.WaitGroup // questions

	mu     sync.Mutex
	closed bool
	idle   map[string]*sentinelConn // by address
	named  string                   // what a majority named last
}

func newAsker(s *sentinels) *asker {
	a := &asker{sentinels: s, idle: map[string]*sentinelConn{}}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// close ends the questions and the connections.
func (a *asker) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel()
	a.all.Wait()
	for _, c := range a.idle {
		discard(c.nc)
	}
}

// sentinelAnswer is the answer of one Sentinel: the address of the master, "" if it knows
// none, or an error.
type sentinelAnswer struct {
	sentinel int
	server   string // the server that has answered
	master   string
	err      error
	first    string // the address under which the server has already counted, if the list has it twice
}

// masterAddr returns the address of the master. It returns as soon as a
// majority of the list names one, so a Sentinel that hangs does not delay it,
// and waits for at most timeout. Questions that are still open end by
// themselves within that time.
// Invariant: a server counts once, however often the list has it. Otherwise a
// malicious Sentinel that is listed by name and by IP would count twice.
func (a *asker) masterAddr(ctx context.Context, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	heard, answers := make([]*sentinelAnswer, len(a.addrs)), make(chan sentinelAnswer, len(a.addrs))
	if !a.begin(timeout, answers) {
		return "", ErrClosed
	}
	votes, counted := map[string]int{}, map[string]string{}
	for range a.addrs {
		select {
		case s := <-answers:
			heard[s.sentinel] = &s
			if s.err != nil {
				continue
			}
			vote := 1
			if s.first = counted[s.server]; s.first != "" {
				vote = 0
			} else {
				counted[s.server] = a.addrs[s.sentinel]
			}
			if votes[s.master] += vote; 2*votes[s.master] > len(a.addrs) {
				return a.decided(s.master)
			}
		case <-ctx.Done():
			return a.undecided(heard, votes)
		}
	}
	return a.undecided(heard, votes)
}

// begin asks all Sentinels. It returns false after close.
func (a *asker) begin(timeout time.Duration, answers chan<- sentinelAnswer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	for i, addr := range a.addrs {
		a.all.Go(func() {
			ctx, cancel := context.WithTimeout(a.ctx, timeout)
			defer cancel()
			s := sentinelAnswer{sentinel: i}
			s.server, s.master, s.err = a.ask(ctx, addr)
			answers <- s
		})
	}
	return true
}

func (a *asker) decided(master string) (string, error) {
	if master == "" {
		return "", ErrNoMaster
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.named = master
	return master, nil
}

// undecided returns the result if no majority agrees. The last master that a
// majority named is dialled again if at least one Sentinel still names it and
// none contradicts: while most Sentinels are down, no failover can replace it.
func (a *asker) undecided(heard []*sentinelAnswer, votes map[string]int) (string, error) {
	a.mu.Lock()
	named := a.named
	a.mu.Unlock()
	if named != "" && len(votes) == 1 && votes[named] > 0 {
		return named, nil
	}
	e := &noMajorityError{}
	for i, addr := range a.addrs {
		switch s := heard[i]; {
		case s == nil || errors.Is(s.err, context.DeadlineExceeded):
			// A timeout, so the next attempt is more patient.
			e.say("%s has not answered: %w", addr, context.DeadlineExceeded)
		case s.err != nil:
			e.say("%s: %w", addr, s.err)
		case s.first != "":
			e.say("%s is the same server as %s, so it counts once: list each Sentinel once", addr, s.first)
		case s.master == "":
			e.say("%s knows no master of that name", addr)
		default:
			e.say("%s names %s", addr, s.master)
		}
	}
	return "", e
}

// noMajorityError lists what each Sentinel answered.
type noMajorityError struct{ each []error }

func (e *noMajorityError) say(format string, args ...any) {
	e.each = append(e.each, fmt.Errorf("Sentinel "+format, args...))
}

func (e *noMajorityError) Error() string {
	text := fmt.Sprintf("fewer than a majority of the %d listed Sentinels name the same master", len(e.each))
	for i, each := range e.each {
		text += []string{": ", "; "}[min(i, 1)] + each.Error()
	}
	return text
}

func (e *noMajorityError) Unwrap() []error { return e.each }
