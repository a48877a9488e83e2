package transport

import (
	"fmt"
	"net"
	"strings"
	"time"
)

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
