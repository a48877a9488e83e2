package transport

// Nodes that are not a single server: a Sentinel set, or one slot of a Redis
// Cluster. The connection follows the master.
//
// For a cluster, the given client asks the servers which of them serves which
// slot and caches the answer for all slots. So this package asks the client.
// Invariant: no command gets an answer that says that the server does not serve
// its slot, or serves only a part of it. The connection ends instead, as if it
// had broken before the answer: leaves are sent again on the next one, other
// commands get ErrBroken, and no handshake succeeds until one server serves the
// whole slot.
//
// For a Sentinel set, the Sentinels are asked at each dial. When a Sentinel
// demotes a master, it ends the connections to it, and the next dial goes to
// the new master. It cannot end them if the old master is cut off from the
// Sentinels, so follow also asks from time to time.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/resp"
)

// followEvery is the shortest interval between two queries to the Sentinels.
const followEvery = time.Second

// follow ends c when there is a new master. It runs on a goroutine of its own,
// which ends with the connection. Failed queries are ignored.
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
		moved := l.dialer.asker != nil && l.dialer.isRenamed(ctx, c.info.Addr) ||
			l.dialer.cluster != nil && l.dialer.hasMoved(ctx)
		cancel()
		if moved {
			l.mu.Lock()
			l.fail(c, errMoved)
			l.mu.Unlock()
			return
		}
	}
}

// isRenamed reports whether the Sentinels name a master at another address than
// at.
func (d *dialer) isRenamed(ctx context.Context, at string) bool {
	addr, err := d.asker.masterAddr(ctx, d.cfg.Stall)
	return err == nil && addr != at
}

// aim finds out which server the next connection goes to. It runs on run's
// goroutine.
func (d *dialer) aim(ctx context.Context) error {
	if d.cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Stall)
	defer cancel()
	client, err := d.slotMaster(ctx)
	if err != nil {
		if strings.Contains(err.Error(), "cluster support disabled") {
			return fmt.Errorf("ask the cluster for the master of a slot: %w: the server is not a Redis Cluster; use "+
				"redis://host:port or redis.NewClient", Safe(err, "CLUSTER SLOTS"))
		}
		return fmt.Errorf("ask the cluster for the master of a slot: %w", Safe(err, "CLUSTER SLOTS"))
	}
	o := client.Options()
	if err := usable(o.Limiter, o.OnConnect); err != nil { // may come from ClusterOptions.NewClient
		return err
	}
	d.at.Store(o)
	return nil
}

func (d *dialer) slotMaster(ctx context.Context) (*redis.Client, error) {
	return within(ctx, func() (*redis.Client, error) { return d.cluster.MasterForKey(ctx, d.cfg.Slot) },
		func(*redis.Client) {})
}

// hasMoved reports whether the slot has another master. The client refreshes
// the slots every ten seconds. A command notices a move at once: see elsewhere.
func (d *dialer) hasMoved(ctx context.Context) bool {
	client, err := d.slotMaster(ctx)
	return err == nil && client.Options().Addr != d.options().Addr
}

// elsewhere returns why a connection that received this answer must end, or nil
// if it need not end. MOVED: another server has the slot. ASK and TRYAGAIN: the
// slot is being moved, and this server lacks some of its keys. CLUSTERDOWN: the
// server does not know whether it still has the slot. The error does not wrap
// the answer, because a caller must not mistake it for the answer to its own
// command.
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

// errElsewhere ends a connection whose server refused a command because another
// server has the slot.
var errElsewhere = errors.New("the server does not serve the whole slot at the moment")
