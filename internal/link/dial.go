package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// options returns a private copy of a client's options, reduced to what opening
// a single connection needs: addresses, TLS, credentials, database, OnConnect.
func options(client redis.UniversalClient, cfg Config) (*redis.Options, error) {
	var o redis.Options
	switch c := client.(type) {
	case nil:
		return nil, errors.New("nil client")
	case *redis.Client:
		if c == nil {
			return nil, errors.New("nil *redis.Client")
		}
		o = *c.Options()
	default:
		return nil, fmt.Errorf("client of type %T: a node is one independent master, give its *redis.Client", client)
	}
	o.Protocol = 2
	o.ContextTimeoutEnabled = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = cfg.Stall, cfg.Stall, cfg.Stall
	o.MaxRetries, o.DialerRetries = -1, 1
	o.PoolSize, o.PipelinePoolSize = 1, -1
	o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 0, 0, 0
	o.ReadBufferSize, o.WriteBufferSize = 4096, 4096
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ClientSideCache, o.ClientSideCacheConfig = nil, nil
	o.PushNotificationProcessor = nil
	o.Limiter = nil
	return &o, nil
}

// open returns a connection that is dialed, encrypted, authenticated and on the
// right database, with nothing unread on it.
//
// Go-redis does the handshake, for it knows every way to authenticate, on a
// client made for this one connection. The client is closed before open
// returns and held only a borrowed handle, so nothing of go-redis (pool, health
// check, finalizer) outlives open or could touch the connection later. It never
// reads ahead: in RESP2 a node sends nothing but answers, and all are read.
func open(ctx context.Context, o *redis.Options) (net.Conn, error) {
	nc, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { discard(nc) })
	handle := &borrowed{Conn: nc}
	once := *o
	once.Dialer = func(context.Context, string, string) (net.Conn, error) {
		if handle.used.Swap(true) {
			return nil, errors.New("connection lost during the handshake")
		}
		return handle, nil
	}
	rdb := redis.NewClient(&once)
	err = rdb.Ping(ctx).Err()
	handle.back.Store(true)
	rdb.Close()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		discard(nc)
		return nil, err
	}
	return nc, nil
}

// dial obeys ctx even where the client's Dialer does not; go-redis's own
// ignores it for TLS. A connection that comes too late is closed.
func dial(ctx context.Context, o *redis.Options) (net.Conn, error) {
	type result struct {
		nc  net.Conn
		err error
	}
	done := make(chan result, 1)
	go func() {
		nc, err := o.Dialer(ctx, o.Network, o.Addr)
		done <- result{nc, err}
	}()
	select {
	case r := <-done:
		return r.nc, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				discard(r.nc)
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// discard closes nc at once: closing a TLS connection first sends an alert,
// which can block for seconds on a node that does not read.
func discard(nc net.Conn) {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		t.NetConn().Close()
	}
	nc.Close()
}

// borrowed is the handle of a connection that ceases to work, and to close it,
// once the owner has taken the connection back.
type borrowed struct {
	net.Conn
	used, back atomic.Bool
}

func (b *borrowed) Read(p []byte) (int, error) {
	if b.back.Load() {
		return 0, net.ErrClosed
	}
	return b.Conn.Read(p)
}

func (b *borrowed) Write(p []byte) (int, error) {
	if b.back.Load() {
		return 0, net.ErrClosed
	}
	return b.Conn.Write(p)
}

func (b *borrowed) Close() error {
	if b.back.Load() {
		return nil
	}
	return b.Conn.Close()
}
