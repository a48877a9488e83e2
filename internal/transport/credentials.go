package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/quorate/quorate/internal/resp"
)

// This file owns the user and password of a connection, from the login on.
//
// Invariant: new credentials are sent on the connection itself, in order with
// the commands.

// resolve returns the command that authenticates the next connection, from the
// first of the sources that go-redis would ask; nil: none is needed. A provider
// is the owner's code and may hang: login calls resolve by way of within.
func resolve(ctx context.Context, o *redis.Options) (auth []string, err error) {
	user, password := o.Username, o.Password
	switch {
	case o.CredentialsProviderContext != nil:
		user, password, err = o.CredentialsProviderContext(ctx)
	case o.CredentialsProvider != nil:
		user, password = o.CredentialsProvider()
	}
	return authenticate(user, password), err
}

// authenticate is the AUTH for a user and a password; nil without a password,
// because there is no such AUTH. A node that wants none admits the client by
// its PING.
func authenticate(user, password string) []string {
	switch {
	case password == "":
		return nil
	case user == "":
		return []string{"AUTH", password}
	default:
		return []string{"AUTH", user, password}
	}
}

// credentials are those of one connection. A provider may change them while it
// lasts. Each connection subscribes for itself, and its subscription ends with
// it: see open.
// Lock order: credentials.mu, then Ordered.mu, which apply takes.
//
// mu guards the fields, and is held while they are applied: so the newest are
// applied last.
type credentials struct {
	l *Ordered

	mu      sync.Mutex
	initial []string               // AUTH, as the connection began
	newer   []string               // not applied yet
	apply   func(command []string) // nil: the connection is not ready
}

// watchCredentials subscribes to the streaming provider, if there is one. stop
// ends that. Subscribe is the owner's code and may hang, so it is left behind
// after timeout, and stop is called when it returns after all. A provider may
// call OnNext before the connection is in use: that waits in newer until ready.
func (l *Ordered) watchCredentials(ctx context.Context, timeout time.Duration) (*credentials, func(), error) {
	provider := l.to().StreamingCredentialsProvider
	if provider == nil {
		return nil, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c := &credentials{l: l}
	stop, err := within(ctx, func() (func(), error) {
		current, unsubscribe, err := provider.Subscribe(c)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.initial = authenticate(current.BasicAuth())
		c.mu.Unlock()
		return func() {
			if unsubscribe != nil {
				_ = unsubscribe()
			}
		}, nil
	}, func(stop func()) { stop() })
	if err != nil {
		return nil, nil, fmt.Errorf("credentials: %w", err)
	}
	return c, stop, nil
}

// first is the AUTH of the login.
// It is nil also where the provider has given no password.
func (c *credentials) first() []string {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.initial
}

// ready says how newer credentials are applied. Without a provider there are
// none.
func (c *credentials) ready(apply func(command []string)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apply = apply; c.newer != nil {
		apply(c.newer)
	}
}

// OnNext takes new credentials from the provider. Without a password it changes
// nothing: a connection that is in use cannot be logged out.
func (c *credentials) OnNext(next auth.Credentials) {
	command := authenticate(next.BasicAuth())
	if command == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newer = command; c.apply != nil {
		c.apply(command)
	}
}

// OnError takes the provider's trouble. The connection keeps its credentials.
// The provider decides when to try again.
func (c *credentials) OnError(err error) {
	c.l.cfg.Notice(fmt.Errorf("the provider of credentials fails; the connection keeps those that it has: %w", err))
}

// again authenticates a connection that is in use. Its Reply has nothing to
// end: a node that refuses a new password goes on to serve the connection under
// the old one.
type again struct {
	l       *Ordered
	command []string
}

func (a *again) Append(dst []byte) []byte { return resp.AppendCommand(dst, a.command...) }

func (a *again) Reply(_ []resp.Value, err error) {
	if e, refused := errors.AsType[resp.Error](err); refused && !needless(e) {
		a.l.cfg.Notice(fmt.Errorf("the node refuses the new credentials; the connection keeps those that it has until it breaks: %w", e))
	}
}

// A connection that is not current gets none: the next one logs in with the
// newest credentials.
//
// authenticateAgain appends an AUTH to c. It neither blocks nor writes.
func (l *Ordered) authenticateAgain(c *conn, command []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur == c {
		c.pushOwn(&again{l, command}, l.now())
		c.wakeWriter()
	}
}
