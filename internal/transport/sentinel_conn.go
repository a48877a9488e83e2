package transport

// One question to one Sentinel: which connection it is sent on, and how the
// answer is read.

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/resp"
)

// sentinelConn is a connection to a Sentinel, used by one question at a time.
type sentinelConn struct {
	nc net.Conn
	rd *resp.Reader
}

// ask asks one Sentinel, on the connection from an earlier question if it still
// works. It also returns which server answered.
func (a *asker) ask(ctx context.Context, addr string) (server, master string, err error) {
	a.mu.Lock()
	c := a.idle[addr]
	delete(a.idle, addr)
	a.mu.Unlock()
	if c != nil {
		if master, err := a.put(ctx, addr, c, nil); err == nil || ctx.Err() != nil {
			return a.server(addr, c.nc), master, err
		}
	}
	nc, err := a.dial(ctx, addr)
	if err != nil {
		return "", "", err
	}
	steps, err := login(ctx, a.login)
	if err != nil {
		discard(nc)
		return "", "", err
	}
	master, err = a.put(ctx, addr, &sentinelConn{nc, resp.NewReader(nc)}, steps)
	return a.server(addr, nc), master, err
}

// server returns which server a connection leads to. A custom Dialer may
// connect to one proxy for all of them; in that case only the address passed to
// the Dialer tells them apart. SENTINEL MYID would not: a Sentinel could claim
// the id of another one, which then would not count.
func (s *sentinels) server(addr string, nc net.Conn) string {
	if s.dialer == nil {
		return nc.RemoteAddr().String()
	}
	return strings.Replace(strings.ToLower(addr), ".:", ":", 1)
}

// put sends the question on a connection, after logging in if the connection is
// new, and keeps the connection unless something fails.
func (a *asker) put(ctx context.Context, addr string, c *sentinelConn, login []loginStep) (string, error) {
	stop := context.AfterFunc(ctx, func() { discard(c.nc) })
	master, err := c.question(a.master, login)
	if !stop() && err != nil {
		err = context.Cause(ctx)
	}
	a.mu.Lock()
	had := a.idle[addr]
	if err == nil && ctx.Err() == nil && had == nil {
		a.idle[addr] = c
	}
	kept := a.idle[addr] == c
	a.mu.Unlock()
	if !kept {
		discard(c.nc)
	}
	return master, err
}

// question returns the address of the master, or "" if the Sentinel knows no
// master of that name.
func (c *sentinelConn) question(name string, login []loginStep) (string, error) {
	out := appendSteps(nil, login)
	if _, err := c.nc.Write(resp.AppendCommand(out, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", name)); err != nil {
		return "", err
	}
	for _, sent := range login {
		if _, err := c.rd.Read(); err != nil && !sent.accepts(err) {
			return "", sent.refused(err)
		}
	}
	v, err := c.rd.Read()
	switch {
	case err != nil:
		return "", loginStep{words: []string{"SENTINEL"}}.refused(err)
	case len(v) == 1 && v[0].Str == nil:
		return "", nil
	case len(v) != 2:
		return "", errNoAddress
	}
	// Answers are compared as text when they are counted, so a host has one
	// spelling here. The text also goes to a Dialer and into errors, so it must
	// have no spaces or control characters.
	host, port := strings.ToLower(string(v[0].Str)), string(v[1].Str)
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" ||
		len(host) > maxHost || strings.ContainsFunc(host, odd) {
		return "", errNoAddress
	}
	return net.JoinHostPort(host, port), nil
}

const maxHost = 253 // the longest possible host name

var errNoAddress = errors.New("did not answer with a master's address: is it a Sentinel?")
