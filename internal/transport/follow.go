package transport

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// This file owns a node that is a Sentinel set: the connection follows its
// master. The Dialer of such a client asks the Sentinels at each dial. A
// Sentinel that makes a master a replica ends the connections to it, and the
// next dial goes to the new one. That does not happen if the old master is cut
// off from the Sentinels, so this file asks now and then.

// SentinelAddr is the address in the options of each redis.NewFailoverClient.
const SentinelAddr = "FailoverClient"

func (d *dialer) sentinels() bool { return d.cluster == nil && d.to().Addr == SentinelAddr }

// ErrNoMaster is what the Sentinels say of a wrong name. It will be the same
// whenever they are asked.
var ErrNoMaster = errors.New("the Sentinels know no master of that name: see master_name")

// unnamed returns ErrNoMaster if that is what a dial has failed with: each
// Sentinel was reached, and has answered nil.
func (d *dialer) unnamed(err error) error {
	if _, away := errors.AsType[net.Error](err); d.sentinels() && !away && errors.Is(err, redis.Nil) {
		return ErrNoMaster
	}
	return err
}

// name is the node's in errors.
func (d *dialer) name() string {
	switch {
	case d.sentinels():
		return "the master that the Sentinels name"
	case d.to() == nil:
		return "the master of a slot"
	}
	return d.to().Addr
}

// followEvery is how often the Sentinels are asked, at most.
const followEvery = time.Second

// follow ends c when there is another master. It is a goroutine of its own for
// each connection, and ends with it. A question that fails says nothing.
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
		moved := l.sentinels() && l.isRenamed(ctx, at) || l.cluster != nil && l.hasMoved(ctx)
		cancel()
		if moved {
			l.mu.Lock()
			l.fail(c, errMoved)
			l.mu.Unlock()
			return
		}
	}
}

// isRenamed reports whether the Sentinels name another master than that at an
// address. A dial is the only question that a client of go-redis lets us ask:
// the connection is closed at once.
func (d *dialer) isRenamed(ctx context.Context, at string) bool {
	o := d.to()
	nc, err := within(ctx, func() (net.Conn, error) { return o.Dialer(ctx, o.Network, o.Addr) }, discard)
	if err != nil {
		return false
	}
	defer discard(nc)
	return nc.RemoteAddr().String() != at
}
