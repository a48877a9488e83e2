package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorate/quorate/internal/resp"
)

// This file owns what a client's options mean for a connection: address, TLS,
// credentials, database, OnConnect.
// Invariant: nothing of go-redis outlives the handshake, or can touch the
// connection later.

// options returns a private copy of a client's options, reduced to what opening
// a single connection needs: no setting gets through that could hold up a
// command or open a second connection.
func options(client *redis.Client, cfg Config) (*redis.Options, error) {
	o := *client.Options()
	if o.Limiter != nil {
		return nil, errors.New("the client has a Limiter, which could hold up a renewal, and is not asked: give a client without one")
	}
	// The handshake sends HELLO itself: see upgrade. In RESP3 a push could come
	// during OnConnect, and go-redis would read it.
	o.Protocol = 2
	// Without it go-redis looks at a context before a read, and not during one.
	o.ContextTimeoutEnabled = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = cfg.Stall, cfg.Stall, cfg.Stall
	// A second dial inside of a handshake would be another connection: run
	// decides when to try again.
	o.MaxRetries, o.DialerRetries = -1, 1
	o.PoolSize, o.PipelinePoolSize = 1, -1
	o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 0, 0, 0
	o.ReadBufferSize, o.WriteBufferSize = 4096, 4096
	// No CLIENT SETINFO: servers before 7.2 refuse it.
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ClientSideCache, o.ClientSideCacheConfig = nil, nil
	o.PushNotificationProcessor = nil
	return &o, nil
}

// dialer opens connections to one node, a single server, a Sentinel set or a
// cluster. It is safe for concurrent use.
type dialer struct {
	cfg     Config
	cluster *redis.ClusterClient          // nil: the node is no cluster
	at      atomic.Pointer[redis.Options] // of the server that the connection goes to
	guests  sync.WaitGroup                // attempts beside that of run; they end with their context
}

// opened is a connection to a node, and what belongs to it.
type opened struct {
	nc    net.Conn
	login []loginStep // what the node answers first
}

// loginStep is a command by which the node lets the connection in. The node
// must accept it. Exceptions: see hello and needless.
type loginStep struct {
	words []string
	hello bool // HELLO 3, which the node may refuse
}

// close ends a connection that no conn has: a handshake that came too late.
func (o *opened) close() { discard(o.nc) }

// open returns a connection that is dialed and encrypted, with nothing unread
// on it. Each step may take as long as timeout. It runs on run's goroutine, or
// on that of listen. The code of the client's owner that it calls may hang, so
// it is left behind when ctx ends: see within.
func (d *dialer) open(ctx context.Context, timeout time.Duration) (*opened, error) {
	ctx, cancel := context.WithTimeout(ctx, maxConnect*d.cfg.Stall)
	defer cancel()
	return within(ctx, func() (*opened, error) { return d.dial(ctx, timeout) }, (*opened).close)
}

// openFirst is open for an attempt that is patient. When that takes more than a
// Stall, it opens further connections beside it, one at a time, a Stall each.
// The first that is open is returned, the others are closed. So there are two
// at most.
//
// While packets are lost, TCP sends its first one again after up to 8 seconds,
// so to wait for the patient one alone is wrong. So is to be impatient alone: a
// node that a whole fleet connects to is slow for each client.
func (d *dialer) openFirst(ctx context.Context, timeout time.Duration) (*opened, error) {
	if timeout <= d.cfg.Stall {
		return d.open(ctx, timeout)
	}
	type result struct {
		o       *opened
		err     error
		patient bool
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result)
	open := func(timeout time.Duration, patient bool) {
		d.guests.Go(func() {
			o, err := d.open(ctx, timeout)
			select {
			case results <- result{o, err, patient}:
			case <-ctx.Done():
				if err == nil {
					o.close()
				}
			}
		})
	}
	open(timeout, true)
	next := time.NewTimer(d.cfg.Stall)
	defer next.Stop()
	for {
		select {
		case r := <-results:
			if r.patient || !slow(r.err) {
				return r.o, r.err
			}
			next.Reset(minBackoff)
		case <-next.C:
			open(d.cfg.Stall, false)
		case <-ctx.Done(): // results may never come: the attempts see it, too
			return nil, context.Cause(ctx)
		}
	}
}

func (d *dialer) dial(ctx context.Context, timeout time.Duration) (*opened, error) {
	o := d.to()
	dialing, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	nc, err := within(dialing, func() (net.Conn, error) { return o.Dialer(dialing, o.Network, o.Addr) }, discard)
	if err != nil {
		return nil, d.unnamed(err)
	}
	if o.OnConnect != nil {
		if err := introduce(ctx, o, nc, timeout); err != nil {
			discard(nc)
			return nil, err
		}
		return &opened{nc: nc, login: []loginStep{{words: []string{"PING"}}}}, nil
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	steps, err := login(asking, o)
	if err != nil {
		discard(nc)
		return nil, err
	}
	return &opened{nc: nc, login: steps}, nil
}

// login returns the commands that authenticate a connection, choose its
// database and name it. The node must accept each. PING shows whether the node
// admits a client that gives no password. HELLO does not authenticate, because
// every version understands AUTH: see upgrade. So all commands go out together,
// and resp.Reader bounds each answer.
func login(ctx context.Context, o *redis.Options) ([]loginStep, error) {
	auth, err := within(ctx, func() ([]string, error) { return resolve(ctx, o) }, func([]string) {})
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	var steps []loginStep
	if auth != nil {
		steps = append(steps, loginStep{words: auth})
	}
	if o.DB > 0 {
		steps = append(steps, loginStep{words: []string{"SELECT", strconv.Itoa(o.DB)}})
	}
	if o.ClientName != "" {
		steps = append(steps, loginStep{words: []string{"CLIENT", "SETNAME", o.ClientName}})
	}
	return append(steps, loginStep{words: []string{"PING"}}), nil
}

// needless reports whether a node refuses a password because it wants none. It
// then admits every client, so the refusal is no error. (go-redis authenticates
// by HELLO, which accepts any password there.)
func needless(refused error) bool {
	return strings.HasPrefix(refused.Error(), "ERR AUTH <password> called without any password configured")
}

// introduce runs OnConnect. OnConnect needs a connection of go-redis, so
// go-redis does that part of the handshake, on a client made for this one
// connection. introduce closes the client, which held only a borrowed handle,
// before it returns. go-redis reads nothing ahead: in RESP2 a node sends
// answers only, and go-redis has read them all.
func introduce(ctx context.Context, o *redis.Options, nc net.Conn, timeout time.Duration) error {
	// OnConnect may ignore its context. A closed socket ends its reads and
	// writes.
	stop := context.AfterFunc(ctx, func() { discard(nc) })
	handle := &borrowed{Conn: nc}
	once := *o
	once.ReadTimeout, once.WriteTimeout = timeout, timeout
	once.Dialer = func(context.Context, string, string) (net.Conn, error) {
		if handle.used.Swap(true) {
			return nil, errors.New("connection lost during the handshake")
		}
		return handle, nil
	}
	rdb := redis.NewClient(&once)
	err := rdb.Ping(ctx).Err()
	handle.back.Store(true)
	rdb.Close()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	return cmp.Or(handle.lie(), err)
}

// within returns the result of f, or the cause of ctx if that ends first. A
// Dialer or a provider of credentials may ignore its context; go-redis's own
// Dialer does for TLS. A late result goes to tooLate.
func within[T any](ctx context.Context, f func() (T, error), tooLate func(T)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				tooLate(r.v)
			}
		}()
		var none T
		return none, context.Cause(ctx)
	}
}

// discard closes nc at once: closing a TLS connection first sends an alert,
// which can block for seconds on a node that does not read.
func discard(nc net.Conn) {
	bare(nc).Close()
	nc.Close()
}

// bare returns a connection without the TLS over it.
func bare(nc net.Conn) net.Conn {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return nc
}

// borrowed is the handle of a connection that ceases to work, and to close it,
// once the owner has taken the connection back. mu guards what stands below it:
// go-redis runs on other goroutines than lie.
// Invariant: a length that resp.Reader would refuse does not pass. go-redis
// allocates what a length announces.
type borrowed struct {
	net.Conn
	used, back atomic.Bool

	mu      sync.Mutex
	framing resp.Framing
	bad     error // what framing has found
}

func (b *borrowed) Read(p []byte) (int, error) {
	if b.back.Load() {
		return 0, net.ErrClosed
	}
	n, err := b.Conn.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bad = cmp.Or(b.bad, b.framing.Check(p[:n])); b.bad != nil {
		return 0, b.bad
	}
	return n, err
}

// lie is what the node has sent that is no reply.
func (b *borrowed) lie() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bad
}

func (b *borrowed) Write(p []byte) (int, error) {
	if b.back.Load() {
		return 0, net.ErrClosed
	}
	return b.Conn.Write(p)
}

// go-redis closes what it is given. After back is set that must not close the
// connection, which belongs to the link again.
func (b *borrowed) Close() error {
	if b.back.Load() {
		return nil
	}
	return b.Conn.Close()
}
