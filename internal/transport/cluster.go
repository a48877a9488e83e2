package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/resp"
)

// This file owns a connection to one slot of a Redis Cluster: it goes to the
// slot's master, and follows it when a replica takes over or the slot moves.
// Invariant: no command sees that a server does not serve its slot, or not all
// of it. The connection ends instead, as if it had broken before the answer:
// leaves are sent again on the next one, the other commands get ErrBroken, and
// no handshake succeeds until one server serves the whole slot.
//
// The given client asks the servers of the cluster which of them serves which
// slot, and caches the answer for all slots. So this package asks the client.

// to returns the options of the server that the connection goes to, or the next
// one while there is none.
func (d *dialer) to() *redis.Options { return d.at.Load() }

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
			err = fmt.Errorf("%w: the server is no Redis Cluster; give it by redis://host:port, or by redis.NewClient", err)
		}
		return fmt.Errorf("ask the cluster for the master of a slot: %w", err)
	}
	opts, err := options(client, d.cfg)
	if err != nil {
		return err
	}
	d.at.Store(opts)
	return nil
}

func (d *dialer) slotMaster(ctx context.Context) (*redis.Client, error) {
	return within(ctx, func() (*redis.Client, error) { return d.cluster.MasterForKey(ctx, d.cfg.Slot) }, func(*redis.Client) {})
}

// lookAgain has the client ask for the slots again, in the background: a
// connection has ended, or has failed to begin. The pause before the next one
// is long enough for that in the usual case.
func (d *dialer) lookAgain(ctx context.Context) {
	if d.cluster != nil {
		d.cluster.ReloadState(ctx)
	}
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
var errElsewhere = errors.New("the server does not serve the whole slot now")
