package transport

// This file owns how a node lets a connection in: user and password, database,
// name, OnConnect.

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
	"github.com/redis/go-redis/v9/auth"

	"github.com/quorate/quorate/internal/resp"
)

// loginStep is a command by which the node lets the connection in. The node
// must accept it. Exceptions: see hello and needless.
type loginStep struct {
	words []string
	hello bool // HELLO 3, which the node may refuse
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

func appendSteps(out []byte, login []loginStep) []byte {
	for _, s := range login {
		out = resp.AppendCommand(out, s.words...)
	}
	return out
}

// needless reports whether a node refuses a password because it wants none. It
// then admits every client, so the refusal is no error. (go-redis authenticates
// by HELLO, which accepts any password there.)
func needless(refused error) bool {
	return strings.HasPrefix(refused.Error(), "ERR AUTH <password> called without any password configured")
}

// resolve returns the command that authenticates the next connection, from the
// first of the sources that go-redis would ask; nil: none is needed. A provider
// is the owner's code and may hang: login calls resolve by way of within.
func resolve(ctx context.Context, o *redis.Options) (auth []string, err error) {
	user, password := o.Username, o.Password
	switch {
	case o.StreamingCredentialsProvider != nil:
		user, password, err = streamed(o.StreamingCredentialsProvider)
	case o.CredentialsProviderContext != nil:
		user, password, err = o.CredentialsProviderContext(ctx)
	case o.CredentialsProvider != nil:
		user, password = o.CredentialsProvider()
	}
	switch {
	case password == "": // there is no such AUTH; a node that wants none admits the client by its PING
		return nil, err
	case user == "":
		return []string{"AUTH", password}, err
	}
	return []string{"AUTH", user, password}, err
}

// streamed asks a streaming provider for its present credentials. What it says
// later counts from the next connection on, as with other providers: a node
// that ends connections whose credentials are over has one come at once.
func streamed(p auth.StreamingCredentialsProvider) (user, password string, err error) {
	current, unsubscribe, err := p.Subscribe(ignored{})
	if err != nil {
		return "", "", err
	}
	if unsubscribe != nil {
		err = unsubscribe()
	}
	user, password = current.BasicAuth()
	return user, password, err
}

// ignored takes what a provider says beside that.
type ignored struct{}

func (ignored) OnNext(auth.Credentials) {}
func (ignored) OnError(error)           {}

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
	handle.mu.Lock()
	defer handle.mu.Unlock()
	return cmp.Or(handle.bad, err)
}

// borrowed is the handle of a connection that ceases to work, and to close it,
// once the owner has taken the connection back. mu guards what stands below it:
// go-redis runs on other goroutines than introduce.
// Invariant: a length that resp.Reader would refuse does not pass. go-redis
// allocates what a length announces.
type borrowed struct {
	net.Conn
	used, back atomic.Bool

	mu      sync.Mutex
	framing resp.Framing
	bad     error // what framing has found: the node has sent what is no reply
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
