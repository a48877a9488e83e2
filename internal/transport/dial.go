package transport

// What a client's options mean for a connection, where the connection goes, and
// when a silent attempt is abandoned early.
// Invariant: go-redis does not touch a connection once its Dialer has returned
// it.

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

// usable returns why a client's options cannot be used, or nil if they can. The
// transport makes its own connections, so a Limiter or OnConnect, which
// go-redis would call, would silently not be called.
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

// dialer opens connections to one node: a single server, a Sentinel set or a
// cluster. It is safe for concurrent use.
type dialer struct {
	cfg     *Config                       // the Ordered's
	cluster *redis.ClusterClient          // see quiet; nil if the node is not a cluster
	asker   *asker                        // asks the Sentinels; nil if the node is not a Sentinel set
	at      atomic.Pointer[redis.Options] // see options
	probes  sync.WaitGroup                // parallel attempts besides run's; they end with their context
}

// close waits for the attempts that are still under way, and ends what asked for
// the master. No connection is opened after it.
func (d *dialer) close() {
	d.probes.Wait() // probes abandon calls that hang: see within
	if d.asker != nil {
		d.asker.close()
	}
	if d.cluster != nil { // it waits for the application's NewClient, which may hang
		ctx, cancel := context.WithTimeout(context.Background(), d.cfg.Stall)
		defer cancel()
		_, _ = within(ctx, func() (any, error) { return nil, d.cluster.Close() }, func(any) {})
	}
}

// options returns the options for the connection, or for the next one. For a
// cluster they are those of the slot's master, and nil before the first aim. For
// a Sentinel set, Addr is the name of the set: the Sentinels say where the
// master is.
func (d *dialer) options() *redis.Options { return d.at.Load() }

// name returns how errors refer to the node.
func (d *dialer) name() string {
	switch {
	case d.asker != nil:
		return "the master that the Sentinels name"
	case d.options() == nil:
		return "the master of a slot"
	}
	return d.options().Addr
}

// opened is a new connection to a node, and what its login needs.
type opened struct {
	nc    net.Conn
	addr  string      // the server's address; for a Sentinel set, the master's
	login []loginStep // the commands to send first
}

// close ends a connection that never became a conn.
func (o *opened) close() { discard(o.nc) }

// open returns a connection that is dialed and encrypted, with nothing unread
// on it. Each step may take up to timeout. open calls the application's code,
// which may hang, and abandons it when ctx ends: see within.
func (d *dialer) open(ctx context.Context, timeout time.Duration) (*opened, error) {
	ctx, cancel := context.WithTimeout(ctx, maxConnect*d.cfg.Stall)
	defer cancel()
	return within(ctx, func() (*opened, error) { return d.dial(ctx, timeout) }, (*opened).close)
}

func (d *dialer) dial(ctx context.Context, timeout time.Duration) (*opened, error) {
	o := d.options()
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

// reach dials the server and returns its address.
func (d *dialer) reach(ctx context.Context, o *redis.Options, timeout time.Duration) (
	nc net.Conn, addr string, err error,
) {
	if d.asker == nil {
		nc, err = within(ctx, func() (net.Conn, error) { return dialed(o.Dialer(ctx, o.Network, o.Addr)) },
			discard)
		return nc, o.Addr, err
	}
	if addr, err = d.asker.masterAddr(ctx, timeout/2); err == nil { // the other half is for the dial
		nc, err = d.asker.dial(ctx, addr)
	}
	return nc, addr, err
}

// advise adds a remedy to an error of connecting. If only one side speaks TLS,
// no error says so: a server with TLS ends the connection, and a server without
// TLS waits for the end of a line.
func (d *dialer) advise(err error) error {
	encrypted := d.options() != nil && d.options().TLSConfig != nil
	op, _ := errors.AsType[*net.OpError](err)
	unresolved, _ := errors.AsType[*net.DNSError](err)
	_, answered := errors.AsType[resp.Error](err)
	switch {
	case strings.Contains(err.Error(), "remote error: tls: certificate required"):
		return fmt.Errorf("%w: the server requires a client certificate: set TLSConfig.Certificates, or "+
			"--tls-cert and --tls-key", err)
	case unresolved != nil && unresolved.IsNotFound:
		return fmt.Errorf("the name %s does not resolve: %w", unresolved.Name, err)
	case slow(err):
		why := "the node or the network is down or slow"
		if encrypted && !d.cfg.Unlisted && errors.Is(err, context.DeadlineExceeded) { // while dialing
			err = fmt.Errorf("the port may not speak TLS (if so, use redis://): %w", err)
		}
		return fmt.Errorf("%w: %s; the next attempt will wait longer (WithNodeTimeout is %v)", err, why,
			d.cfg.NodeTimeout)
	case answered && d.provided() && badCredentials(err):
		return fmt.Errorf("%w: %w", err, ErrCredentials)
	case answered:
		return err
	case !encrypted && !d.cfg.Unlisted && (errors.Is(err, io.EOF) || op != nil && op.Op == "read"):
		return fmt.Errorf("%w: if the port speaks TLS, use rediss://; if a proxy closes connections at HELLO, add "+
			"?protocol=2", err)
	}
	return err
}

// When a patient attempt has heard nothing for a Stall, probeInParallel opens
// other connections, one at a time, for up to a Stall each. If one of them gets
// an answer, probeInParallel calls lost, which ends the patient attempt so that
// the next one can begin. The extra connections only log in, so no command that
// changes anything is sent twice. heard is closed when the patient attempt has
// heard something.
//
// Note: It would be incorrect to wait only for the patient attempt. TCP
// retransmits after up to 8 s, and proxies accept connections even while
// packets are lost, so after an outage of 20 s a working node would stay unused
// for up to 16 s more. It would also be incorrect to be impatient: while a
// whole fleet connects to a node, it is slow for every client.
func (d *dialer) probeInParallel(ctx context.Context, heard <-chan struct{}, lost context.CancelCauseFunc) {
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
			lost(errStalled) // not a timeout, so the next attempt is not more patient
		}
		return
	}
}

// responds reports whether the node answers on another connection. A refusal
// says nothing about the patient attempt, which may occupy the only connection
// that the server allows this client.
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
