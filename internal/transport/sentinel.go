package transport

import (
	"context"
	"net"
	"time"
)

// This file owns a node that is a Sentinel set: the connection follows its master.
//
// The Dialer of such a client asks the Sentinels at each dial. A Sentinel that makes a master a
// replica ends the connections to it, and the next dial goes to the new one. That does not
// happen if the old master is cut off from the Sentinels, so this file asks now and then.

// SentinelAddr is the address in the options of each redis.NewFailoverClient.
const SentinelAddr = "FailoverClient"

func (l *Ordered) follows() bool { return l.opts.Addr == SentinelAddr }

// name is the node's in errors.
func (l *Ordered) name() string {
	if l.follows() {
		return "the master that the Sentinels name"
	}
	return l.opts.Addr
}

// followEvery is how often the Sentinels are asked, at most.
const followEvery = time.Second

// follow ends c when the Sentinels name another master. A dial is the only question that a
// client of go-redis lets us ask: the connection is closed at once.
func (l *Ordered) follow(c *conn) {
	tick := time.NewTicker(max(l.cfg.Stall, followEvery))
	defer tick.Stop()
	at := c.nc.RemoteAddr().String()
	for {
		select {
		case <-c.dead:
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(l.ctx, l.cfg.Stall)
		nc, err := within(ctx, func() (net.Conn, error) { return l.opts.Dialer(ctx, l.opts.Network, l.opts.Addr) }, discard)
		cancel()
		if err != nil {
			continue
		}
		now := nc.RemoteAddr().String()
		discard(nc)
		if now != at {
			l.mu.Lock()
			l.fail(c, errMoved)
			l.mu.Unlock()
			return
		}
	}
}
