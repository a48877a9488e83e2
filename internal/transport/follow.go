package transport

// This file owns a node that is no single server: a Sentinel set, or a Redis
// Cluster, of which the connection goes to one slot. It follows the master.
//
// Of a cluster the given client asks the servers which of them serves which
// slot, and caches the answer for all slots. So this package asks the client.
// Invariant: no command sees that a server does not serve its slot, or not all
// of it. The connection ends instead, as if it had broken before the answer:
// leaves are sent again on the next one, the other commands get ErrBroken, and
// no handshake succeeds until one server serves the whole slot.
//
// The Sentinels of a set are asked at each dial. A Sentinel that makes a master
// a replica ends the connections to it, and the next dial goes to the new one.
// That does not happen if the old master is cut off from the Sentinels, so this
// file asks now and then.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/resp"
)

// followEvery is how often the Sentinels are asked, at most.
const followEvery = time.Second

// follow ends c when there is a new master. It is a goroutine of its own for
// each connection, and ends with it. A question that fails says nothing.
func (l *Ordered) follow(c *conn) {
	tick := time.NewTicker(max(l.cfg.Stall, followEvery))
	defer tick.Stop()
	for {
		select {
		case <-c.dead:
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(l.ctx, l.cfg.Stall)
		moved := l.asker != nil && l.isRenamed(ctx, c.info.Addr) || l.cluster != nil && l.hasMoved(ctx)
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
// address.
func (d *dialer) isRenamed(ctx context.Context, at string) bool {
	addr, err := d.asker.masterAddr(ctx, d.cfg.Stall)
	return err == nil && addr != at
}

// aim finds out where the next connection goes. It runs on run's goroutine.
func (d *dialer) aim(ctx context.Context) error {
	if d.cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Stall)
	defer cancel()
	client, err := d.slotMaster(ctx)
	if err != nil {
		if strings.Contains(err.Error(), "cluster support disabled") {
			return fmt.Errorf("ask the cluster for the master of a slot: %w: the server is not a Redis Cluster; use redis://host:port or redis.NewClient", Safe(err, "CLUSTER SLOTS"))
		}
		return fmt.Errorf("ask the cluster for the master of a slot: %w", Safe(err, "CLUSTER SLOTS"))
	}
	o := client.Options()
	if err := usable(o.Limiter, o.OnConnect); err != nil { // of its ClusterOptions.NewClient
		return err
	}
	d.at.Store(o)
	return nil
}

func (d *dialer) slotMaster(ctx context.Context) (*redis.Client, error) {
	return within(ctx, func() (*redis.Client, error) { return d.cluster.MasterForKey(ctx, d.cfg.Slot) }, func(*redis.Client) {})
}

// hasMoved reports whether the slot has another master. The client asks for the
// slots every ten seconds. A command finds out at once: see elsewhere.
func (d *dialer) hasMoved(ctx context.Context) bool {
	client, err := d.slotMaster(ctx)
	return err == nil && client.Options().Addr != d.to().Addr
}

// elsewhere returns why a connection must end that got this answer, nil if it
// must not. MOVED: another server has the slot. ASK and TRYAGAIN: the slot is
// being moved, and this server lacks some of its keys. CLUSTERDOWN: the server
// does not know whether it still has the slot. The error does not wrap the
// answer: none of the callers may take it for one to its command.
func (c *conn) elsewhere(answer error) error {
	e, ok := answer.(resp.Error)
	if !ok || !c.slotted {
		return nil
	}
	switch e.Code() {
	case "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN":
		return fmt.Errorf("%w: %s", errElsewhere, string(e))
	}
	return nil
}

// errElsewhere ends a connection whose server has refused a command as another
// one's.
var errElsewhere = errors.New("the server does not serve the whole slot at the moment")
