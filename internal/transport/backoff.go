package transport

// How long to wait before the next attempt to connect, how patient that attempt
// is, and what happens to the connection of an abandoned attempt.

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"github.com/quorate/quorate/internal/resp"
)

const (
	// minBackoff is long enough that a node that refuses connections costs
	// little, and short enough that a restarted node is back before a caller
	// notices.
	minBackoff = 20 * time.Millisecond
	// maxBackoff bounds how long a node stays unused after it has come back.
	// Clients reconnect at random times below it, so that they do not all
	// arrive at once.
	maxBackoff = time.Second
)

// The times that an attempt to connect may take, in Stalls.
const (
	maxStep    = 16 // one step
	maxConnect = 32 // all of it
)

// backoff is the pause between attempts: 20 ms doubling to 1 s, each drawn from
// its upper half, so that the clients of a restarted node do not arrive
// together. After a timeout, the next attempt may take twice as long.
type backoff struct {
	next time.Duration
	slow int // attempts that timed out
}

func (b *backoff) stepTimeout(stall time.Duration) time.Duration {
	return min(stall<<b.slow, maxStep*stall)
}

// failed records the error of a failed attempt. A timeout makes the next
// attempt more patient; a refused connection does not.
func (b *backoff) failed(err error) {
	if slow(err) {
		b.slow = min(b.slow+1, 4)
	}
}

// lasted records how long a broken connection was up. If it had answered a
// command, the next pause is no longer than that, so a node whose connections
// keep being reset is still up half of the time. If Reconnect ended it, the next
// pause is the shortest one: the owner says how often it wants another connection.
func (b *backoff) lasted(d time.Duration, served, replaced bool) {
	switch {
	case d > maxBackoff:
		*b = backoff{}
	case replaced:
		b.next = 0
	case served:
		b.next = min(b.next, d)
	}
}

// misbehaves reports whether a node that answered broke the protocol. It will
// probably break it again, so the pause doubles no matter how much was
// answered.
func misbehaves(cause error) bool {
	return errors.Is(cause, resp.ErrProtocol) || errors.Is(cause, errMisplaced) ||
		errors.Is(cause, errUnasked)
}

// sleep waits for the next attempt, and doubles the pause after that. Close
// ends it early.
func (b *backoff) sleep(ctx context.Context) {
	d := min(max(b.next, minBackoff), maxBackoff)
	b.next = 2 * d
	t := time.NewTimer(d/2 + rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// slow reports whether err is a timeout: of a step in this package, of a dial,
// or of the operating system. A timeout makes the next attempt more patient (see
// backoff), and a caller that stops reading at its deadline has not broken the
// connection (takeUntil). So errStalled must not be a timeout.
func slow(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

// steady is a connection that must make progress: each step of a read or a
// write has a deadline of its own.
//
// Note: Here is an incorrect deadline:
//
//	nc.SetDeadline(time.Now().Add(patience))
//
// If many clients connect at once, none of them has sent all its bytes by that
// time. All begin again, and none ever connects.
type steady struct {
	net.Conn
	timeout time.Duration // for one step; 0: no deadlines
	heard   func()        // called when something was read; may be nil
}

// stride is how much is written in one step. A single deadline for a whole
// write would have to grow with its length. With steps, a network that carries
// 4 kB within a timeout is fast enough.
const stride = 4 << 10

func (s *steady) Read(p []byte) (n int, err error) {
	if s.heard != nil {
		defer func() {
			if n > 0 {
				s.heard()
			}
		}()
	}
	if s.timeout > 0 {
		if err := s.SetReadDeadline(time.Now().Add(s.timeout)); err != nil {
			return 0, err
		}
	}
	return s.Conn.Read(p)
}

func (s *steady) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if err := s.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
			return n, err
		}
		k, err := s.Conn.Write(p[:min(len(p), stride)])
		if n += k; err != nil {
			return n, err
		}
		p = p[k:]
	}
	return n, nil
}

// within returns the result of f, or the cause of ctx if ctx ends first. It is
// for code that may ignore its context: an application's Dialer or provider of
// credentials, and go-redis's own Dialer for TLS. A late result goes to
// tooLate.
func within[T any](ctx context.Context, f func() (T, error), tooLate func(T)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		r := result{err: errExited}
		defer func() { done <- r }() // also when f calls runtime.Goexit
		r.v, r.err = f()
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

// discard closes nc at once. Closing a TLS connection would first send an
// alert, which can block for seconds if the node does not read.
func discard(nc net.Conn) {
	bare(nc).Close()
	nc.Close()
}

// bare returns the connection underneath TLS, or underneath what else has the
// method NetConn of a tls.Conn.
func bare(nc net.Conn) net.Conn {
	for range 10 { // a wrapper may return itself
		outer, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		inner := outer.NetConn()
		if inner == nil {
			break
		}
		nc = inner
	}
	return nc
}
