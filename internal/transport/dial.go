package transport

// This file owns what a client's options mean for a connection, where it goes,
// and when an attempt that hears nothing is given up before its time.
// Invariant: nothing of go-redis touches a connection once its Dialer has
// returned it.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/resp"
)

// usable returns why a client's options are refused, nil if they are not.
// Connections are the link's own: what go-redis would call for each command or
// connection is not called.
func usable(limiter redis.Limiter, onConnect func(context.Context, *redis.Conn) error) error {
	switch {
	case limiter != nil:
		return errors.New("the client has a Limiter, which could delay a renewal: pass a client without one")
	case onConnect != nil:
		return errors.New("the client has an OnConnect, which would not be called: pass a client without one; " +
			"use CredentialsProviderContext for credentials; ClientName and DB apply as they are")
	}
	return nil
}

// dialer opens connections to one node, a single server, a Sentinel set or a
// cluster. It is safe for concurrent use.
type dialer struct {
	cfg     Config
	cluster *redis.ClusterClient          // nil: the node is no cluster
	asker   *asker                        // of the Sentinels; nil: the node is no Sentinel set
	at      atomic.Pointer[redis.Options] // of the server that the connection goes to
	guests  sync.WaitGroup                // attempts beside that of run; they end with their context
}

// to returns the options of the server that the connection goes to, or the next
// one while there is none.
func (d *dialer) to() *redis.Options { return d.at.Load() }

// name is the node's in errors.
func (d *dialer) name() string {
	switch {
	case d.asker != nil:
		return "the master that the Sentinels name"
	case d.to() == nil:
		return "the master of a slot"
	}
	return d.to().Addr
}

// opened is a connection to a node, and what belongs to it.
type opened struct {
	nc    net.Conn
	addr  string      // of the server: of a Sentinel set the master that the Sentinels named
	login []loginStep // what the node answers first
}

// close ends a connection that no conn has: a handshake that came too late.
func (o *opened) close() { discard(o.nc) }

// open returns a connection that is dialed and encrypted, with nothing unread
// on it. Each step may take as long as timeout. The code of the client's owner
// that it calls may hang, so it is left behind when ctx ends: see within.
func (d *dialer) open(ctx context.Context, timeout time.Duration) (*opened, error) {
	ctx, cancel := context.WithTimeout(ctx, maxConnect*d.cfg.Stall)
	defer cancel()
	return within(ctx, func() (*opened, error) { return d.dial(ctx, timeout) }, (*opened).close)
}

func (d *dialer) dial(ctx context.Context, timeout time.Duration) (*opened, error) {
	o := d.to()
	dialing, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	nc, addr, err := d.reach(dialing, o, timeout)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	steps, err := login(asking, o)
	if err != nil {
		discard(nc)
		return nil, err
	}
	return &opened{nc: nc, addr: addr, login: steps}, nil
}

// reach dials the server, and says at which address it is.
func (d *dialer) reach(ctx context.Context, o *redis.Options, timeout time.Duration) (nc net.Conn, addr string, err error) {
	if d.asker == nil {
		nc, err = within(ctx, func() (net.Conn, error) { return o.Dialer(ctx, o.Network, o.Addr) }, discard)
		return nc, o.Addr, err
	}
	if addr, err = d.asker.masterAddr(ctx, timeout/2); err == nil { // the dial has the other half
		nc, err = d.asker.dial(ctx, addr)
	}
	return nc, addr, err
}

// advise adds the remedy to an error of connecting. Where the client or the
// server alone speaks TLS neither says so: a server that does ends the
// connection, and one that does not waits for the end of a line.
func (d *dialer) advise(err error) error {
	encrypted := d.to() != nil && d.to().TLSConfig != nil
	op, _ := errors.AsType[*net.OpError](err)
	unresolved, _ := errors.AsType[*net.DNSError](err)
	_, answered := errors.AsType[resp.Error](err)
	switch {
	case strings.Contains(err.Error(), "remote error: tls: certificate required"):
		return fmt.Errorf("%w: the server requires a client certificate: set TLSConfig.Certificates, or --tls-cert and --tls-key", err)
	case unresolved != nil && unresolved.IsNotFound:
		return fmt.Errorf("the name %s does not resolve: %w", unresolved.Name, err)
	case slow(err):
		why := "the node or the network is down or slow"
		if encrypted && !d.cfg.Unlisted && errors.Is(err, context.DeadlineExceeded) { // while dialing
			err = fmt.Errorf("the port may not speak TLS (if so, use redis://): %w", err)
		}
		return fmt.Errorf("%w: %s; the next attempt will wait longer (WithNodeTimeout is %v)", err, why, d.cfg.NodeTimeout)
	case answered && d.provided() && badCredentials(err):
		return fmt.Errorf("%w: %w", err, ErrCredentials)
	case answered:
		return err
	case !encrypted && !d.cfg.Unlisted && (errors.Is(err, io.EOF) || op != nil && op.Op == "read"):
		return fmt.Errorf("%w: if the port speaks TLS, use rediss://; if a proxy closes connections at HELLO, add ?protocol=2", err)
	}
	return err
}

// overtake opens connections beside an attempt that is patient and has heard
// nothing for a Stall, one at a time, a Stall each. When one of them is
// answered it calls lost, and the next attempt follows. They only log in: no
// command that changes anything goes out on two connections. heard is closed
// when something was heard.
//
// Note: Here is an incorrect version: to wait for the patient one alone. TCP
// sends what was lost again after up to 8 s, and what forwards connections
// accepts one also while packets are lost. After a cut of 20 s a node that
// works would stay unused for up to 16 s more. To be impatient alone is wrong,
// too: a node that a whole fleet connects to is slow for each client.
func (d *dialer) overtake(ctx context.Context, heard <-chan struct{}, lost context.CancelCauseFunc) {
	t := time.NewTimer(d.cfg.Stall)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-heard:
			return
		case <-ctx.Done():
			return
		}
		began := time.Now()
		if !d.responds(ctx) {
			t.Reset(max(minBackoff, d.cfg.Stall-time.Since(began)))
			continue
		}
		select {
		case <-heard:
		default:
			lost(errStalled) // no timeout: the next attempt is not more patient
		}
		return
	}
}

// responds reports whether the node answers on a connection of its own. One
// that is refused says nothing of the attempt beside it, which may have the
// only place for this client.
func (d *dialer) responds(ctx context.Context) bool {
	o, err := d.open(ctx, d.cfg.Stall)
	if err != nil {
		return false
	}
	defer o.close()
	stop := context.AfterFunc(ctx, o.close)
	defer stop()
	s := &steady{Conn: o.nc, timeout: d.cfg.Stall}
	if _, err := s.Write(appendSteps(nil, o.login)); err != nil {
		return false
	}
	_, err = resp.NewReader(s).Read()
	e, refused := err.(resp.Error)
	return err == nil || refused && !strings.HasPrefix(string(e), "ERR max number of clients")
}
