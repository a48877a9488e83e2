package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/resp"
)

// This file owns how long the next attempt to connect waits, how patient it is,
// and when a handshake that hears nothing is given up before its time: when a
// connection that was opened later is answered first.

const (
	// minBackoff is long enough that a node that refuses connections costs
	// little, and short enough that a restarted node is back before a caller
	// notices.
	minBackoff = 20 * time.Millisecond
	// maxBackoff bounds how long a node that is back stays unused. Many clients
	// try at random times below it, so they do not all come at one moment.
	maxBackoff = time.Second
)

// The times that an attempt to connect may take, in Stalls.
const (
	maxStep    = 16 // one step
	maxConnect = 32 // all of it
)

// backoff is the pause between attempts: 20 ms doubling to 1 s, each drawn from
// its upper half, so that many clients of a node that comes back do not meet.
// After a timeout the next attempt may take twice as long.
type backoff struct {
	next time.Duration
	slow int // attempts that took too long
}

func (b *backoff) stepTimeout(stall time.Duration) time.Duration {
	return min(stall<<b.slow, maxStep*stall)
}

// failed takes why an attempt has failed. Only a timeout makes the next attempt
// more patient. A refused connection fails at once, however long it may take.
func (b *backoff) failed(err error) {
	if slow(err) {
		b.slow = min(b.slow+1, 4)
	}
}

// lasted takes how long a connection was up that has broken. After one that has
// answered a command the pause is no longer than that, so a node whose
// connections are reset again and again is up for half of the time. A
// connection that breaks before any answer shortens no pause: its node may
// refuse every one.
func (b *backoff) lasted(d time.Duration, served bool) {
	if d > maxBackoff {
		*b = backoff{}
	} else if served {
		b.next = min(b.next, d)
	}
}

// sleep waits for the next attempt, and doubles the pause after that. It ends
// early with Close.
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

// slow reports whether err is a timeout: of a step here, of a dial, or of the
// system. Only these let the next attempt take longer: see backoff.
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
// When many clients connect at once, none has sent all its bytes by then. All
// of them begin again, and none ever connects.
type steady struct {
	net.Conn
	timeout time.Duration // of one step; 0: no deadlines are set
	heard   func()        // called when something was read; nil: not
}

// stride is how much is written in one step. One deadline for a write of any
// length would have to grow with it. On a way that carries 4 kB within a
// timeout each step succeeds.
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

// advise adds the remedy to an error of connecting.
func (d *dialer) advise(err error) error {
	if strings.Contains(err.Error(), "remote error: tls: certificate required") {
		return fmt.Errorf("%w: the server wants a certificate of the client: give one by TLSConfig.Certificates, or by --tls-cert and --tls-key", err)
	}
	if !slow(err) {
		return err
	}
	return fmt.Errorf("%w: the node or the network hangs, or is overloaded; the next attempt waits for longer, and so does every one with a WithNodeTimeout above %v", err, d.cfg.NodeTimeout)
}

// overtake opens connections beside one whose handshake is patient and has
// heard nothing for a Stall, one at a time, a Stall each. When one of them is
// answered it calls lost. They only log in: no command that changes anything
// goes out on two connections. heard is closed when something was heard.
//
// Note: Here is an incorrect version: to wait for the patient one alone. What
// forwards connections accepts one also while packets are lost, and those that
// it lost do not come again. After a cut of 20 s a node that works would stay
// unused for up to 16 s more.
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
		if !d.responds(ctx) {
			t.Reset(minBackoff)
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

// responds reports whether the node answers on a connection of its own.
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
	_, refused := err.(resp.Error)
	return err == nil || refused
}
